// Everything that mails and pages say, as a table with one entry for each phrase. A language is one file with such a
// table (english.cpp). "{0}" and so on stand for what page/line.hpp fills in.
#pragma once

#include <string>
#include <string_view>

#include "notify/words/language.hpp"

namespace fencepost::notify {

// Has no default, so that a table without an entry does not compile.
class Phrase {
 public:
  consteval Phrase(const char* text) : text_(text) {}
  constexpr operator std::string_view() const { return text_; }
  std::string text() const { return std::string(text_); }

 private:
  std::string_view text_;
};

struct StatusWords {
  Phrase name;      // "Ready"
  Phrase subject;   // of the mail: "Ready to execute"
  Phrase headline;  // "An operation is ready to execute"
  Phrase meaning;   // for the reader
  Phrase undone;    // what it means that a reorg has undone the change to this status
};

enum class FlowStatus { kWaiting, kReady, kExecuted, kCancelled, kExpired };

inline constexpr auto kFlowStatuses = name_table<FlowStatus>({
    {FlowStatus::kWaiting, "waiting"},
    {FlowStatus::kReady, "ready"},
    {FlowStatus::kExecuted, "executed"},
    {FlowStatus::kCancelled, "cancelled"},
    {FlowStatus::kExpired, "expired"},
});

struct FlowWords {
  StatusWords waiting, ready, executed, cancelled, expired;
  StatusWords blocked;  // ready, but another operation must be executed first

  // A change that was taken back. {0}: the status that was announced.
  Phrase undone_badge;
  Phrase undone_subject;
  Phrase undone_headline;
  Phrase undone_intro;
  Phrase undone_outlook;

  // Subjects. {0}: what happened, {1}: the contract's name or its short address, {2}: its short address, {3}: the
  // chain.
  Phrase subject_named;
  Phrase subject_unnamed;

  Phrase operation;  // the heading of these rows:
  Phrase timelock;
  Phrase address;
  Phrase remark;
  Phrase chain;
  Phrase named_chain;    // {0}: the name, {1}: the number
  Phrase unnamed_chain;  // {0}: the number
  Phrase status;
  Phrase status_change;  // {0}: from, {1}: to
  Phrase status_new;     // {0}: to
  Phrase status_undone;  // {0}: what `status_change` or `status_new` says
  Phrase changed_at;
  Phrase ready_at;
  Phrase no_ready_at;
  Phrase expires_at;
  Phrase expired_at;
  Phrase blocked_by;
  Phrase not_before;  // {0}: the operation that must be executed first
  Phrase initiator;
  Phrase via;
  Phrase details;  // the heading of these rows:
  Phrase transaction;
  Phrase queue_transaction;
  Phrase operation_id;
  Phrase standard;

  Phrase open_dashboard;
  Phrase view_transaction;
  Phrase why;  // {0}: the contract's address, {1}: the chain
  Phrase unsubscribe;
};

struct CallWords {
  Phrase one;   // the heading of the only call
  Phrase many;  // {0}: which one, {1}: of how many
  Phrase more_calls_heading;
  Phrase more_call;   // exactly one is left out
  Phrase more_calls;  // {0}: how many are left out
  Phrase function;
  Phrase unknown_function;  // {0}: the selector
  Phrase no_function;       // the call has no data
  Phrase target;
  Phrase value;
  Phrase amount;  // {0}: in the chain's coin, {1}: in wei
  Phrase data;
  Phrase empty_value;
  Phrase cut_bytes;       // {0}: the beginning, {1}: bytes shown, {2}: bytes in all
  Phrase cut_characters;  // {0}: the beginning, {1}: characters shown, {2}: characters in all
  Phrase more_argument;
  Phrase more_arguments;  // {0}: how many are left out
  Phrase not_explained;
};

struct UnitWords {
  Phrase one;   // {0}: 1
  Phrase many;  // {0}: 0, 2, 3, …
};

struct TimeWords {
  UnitWords day, hour, minute, second;
  Phrase two_units;  // {0}: the larger, {1}: the smaller
  Phrase in;         // {0}: how long
  Phrase ago;        // {0}: how long
  Phrase now;
  Phrase soon;  // in less than a minute
  Phrase just_now;
  Phrase moment;  // {0}: the time in UTC, {1}: how far away it is
};

struct CodeWords {
  Phrase subject;
  Phrase headline;
  Phrase enter;     // what to do with the code
  Phrase lifetime;  // {0}: how long
  Phrase secret;
  Phrase not_you;
};

// {0}: the mail address, {1}: the contract's address, {2}: the chain's number.
struct UnsubscribeWords {
  Phrase ask_headline;
  Phrase ask;
  Phrase ask_note;
  Phrase button;
  Phrase done_headline;
  Phrase done;
  Phrase done_note;
  Phrase bad_link_headline;
  Phrase bad_link;
};

struct Words {
  Phrase language;  // of BCP 47
  Phrase colon;     // between a label and its value
  FlowWords flow;
  CallWords call;
  TimeWords time;
  CodeWords code;
  UnsubscribeWords unsubscribe;
};

extern const Words kEnglishWords;
extern const Words kChineseWords;

const Words& words_of(Language language);

const StatusWords& words_of(const FlowWords& words, FlowStatus status);

}  // namespace fencepost::notify
