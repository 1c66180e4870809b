#include "notify/transport/smtp_dialogue.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
#include <span>

#include <fmt/format.h>

#include "base/contains.hpp"
#include "base/text.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kReplyMax = 1000;  // a server may send lines without end

constexpr std::string_view kStageNames[] = {"the connection", "MAIL", "RCPT", "DATA", "the message"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "550 …" and "550-…"; 0: the line has no code.
int code_of(std::string_view line) {
  int code = 0;
  if (line.size() < 3) return 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + 3, code);
  return error == std::errc() && end == line.data() + 3 ? code : 0;
}

std::string_view without_line_end(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// RFC 3463: "5.1.1" of "550 5.1.1 no such user"; empty: the reply has none.
std::string_view enhanced_status(std::string_view reply) {
  if (reply.size() < 5) return {};
  const auto text = reply.substr(4);
  const auto status = text.substr(0, text.find(' '));
  const bool shaped = status.size() >= 5 && is_digit(status[0]) && status[1] == '.' && is_digit(status[2]) &&
                      status.find('.', 2) != std::string_view::npos && is_digit(status.back());
  return shaped ? status : std::string_view();
}

// RFC 3463 and RFC 7505 on the recipient's address: no such mailbox, no such domain, bad syntax, moved, no mail domain.
// The other codes 5.1.x are about the sender (5.1.7, 5.1.8) or say nothing (5.1.0).
constexpr std::array<std::string_view, 5> kUnknownMailbox{"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10"};

// For replies without an enhanced code. A word of each of the first two lists, and none of the third, which are about
// the relay, the sender or a policy: such a reply would come for every recipient.
constexpr std::array<std::string_view, 5> kMailboxWords{"user", "mailbox", "recipient", "address", "account"};
constexpr std::array<std::string_view, 5> kUnknownWords{"unknown", "does not exist", "no such", "not found",
                                                        "unavailable"};
constexpr std::array<std::string_view, 7> kOtherReasons{"relay",  "sender", "blocked",  "spam",
                                                        "policy", "denied", "rcpthosts"};

bool has_any(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.contains(word); });
}

// Addresses are left out: the words in them say nothing.
bool says_unknown_mailbox(std::string_view reply) {
  std::string text;
  for (const auto word : std::views::split(lowercase(reply), ' ')) {
    const std::string_view written(word);
    if (!written.contains('@')) text.append(written).append(" ");
  }
  return has_any(text, kMailboxWords) && has_any(text, kUnknownWords) && !has_any(text, kOtherReasons);
}

}  // namespace

void SmtpDialogue::on_command(std::string_view line) {
  over_ = without_line_end(line) == "QUIT";
  // In this order only: an answer during AUTH is base64, and could begin with "DATA".
  auto next = stage_;
  if (line.starts_with("MAIL FROM:")) next = SmtpStage::kMail;
  if (line.starts_with("RCPT TO:")) next = SmtpStage::kRcpt;
  if (stage_ == SmtpStage::kRcpt && line.starts_with("DATA")) next = SmtpStage::kData;
  if (next == stage_) return;
  stage_ = next;
  code_ = 0;
  reply_.clear();
}

void SmtpDialogue::on_reply(std::string_view line) {
  if (over_) return;
  line = without_line_end(line);
  const auto code = code_of(line);
  if (code == 0) return;
  if (code != code_) reply_.clear();
  code_ = code;
  if (reply_.size() < kReplyMax) reply_ += (reply_.empty() ? "" : " ") + std::string(line.substr(0, kReplyMax));
}

void SmtpDialogue::on_body(bool last) {
  if (stage_ != SmtpStage::kBody) {
    stage_ = SmtpStage::kBody;
    code_ = 0;  // 354, the reply to DATA
    reply_.clear();
  }
  body_left_ = body_left_ || last;
}

SendOutcome SmtpDialogue::failure(std::string_view reason) const {
  // Other replies to MAIL are about the sender, who is the same for all mails. 552 is about the size of this one.
  const bool too_large = stage_ == SmtpStage::kMail && code_ == 552;
  const bool about_this_mail = stage_ >= SmtpStage::kRcpt || too_large;
  // 2yz after the body is an acceptance, also with another code than 250, which libcurl expects.
  if (stage_ == SmtpStage::kBody && body_left_ && code_ / 100 == 2) return {SendResult::kSent, "", false};
  if (about_this_mail && code_ / 100 == 5) return {refusal(), detail(reason), false, brief()};
  if (about_this_mail && code_ / 100 == 4) return {SendResult::kNotSent, detail(reason), code_ == 421, brief()};
  if (body_left_) return {SendResult::kMaybeSent, detail(reason), true};
  return {SendResult::kNotSent, detail(reason), true};
}

SendResult SmtpDialogue::refusal() const {
  if (stage_ != SmtpStage::kRcpt) return SendResult::kRefused;
  const auto status = enhanced_status(reply_);
  const bool bare = status.empty() && (code_ == 550 || code_ == 551 || code_ == 553);
  const bool unknown = contains(kUnknownMailbox, status) || (bare && says_unknown_mailbox(reply_));
  return unknown ? SendResult::kUnknownAddress : SendResult::kRefused;
}

// "550 5.1.1 no such user (in reply to RCPT)", or why there is no reply.
std::string SmtpDialogue::detail(std::string_view reason) const {
  const auto stage = kStageNames[static_cast<std::size_t>(stage_)];
  if (code_ >= 400) return plain_text(fmt::format("{} (in reply to {})", reply_, stage), kDetailMaxBytes);
  return plain_text(stage_ == SmtpStage::kConnect ? std::string(reason) : fmt::format("{} (after {})", reason, stage),
                    kDetailMaxBytes);
}

// "550 5.1.1 (in reply to RCPT)". Replies before RCPT are in full: they cannot name the recipient.
std::string SmtpDialogue::brief() const {
  if (stage_ < SmtpStage::kRcpt) return "";
  const auto status = plain_text(enhanced_status(reply_), kDetailMaxBytes);
  return fmt::format("{}{}{} (in reply to {})", code_, status.empty() ? "" : " ", status,
                     kStageNames[static_cast<std::size_t>(stage_)]);
}

}  // namespace fencepost::notify
