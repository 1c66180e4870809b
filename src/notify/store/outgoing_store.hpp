// Mails that are due, in the three tables that hold mails (db/migrations/0018_mail.sql). Functions throw as pg::Pool
// does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "notify/model/flow_facts.hpp"
#include "notify/model/notify_filters.hpp"
#include "notify/service/send_decision.hpp"
#include "pg/pool.hpp"

namespace fencepost::notify {

enum class MailKind { kCode, kFlow, kOperator };

namespace sql {
extern const pg::Statement kClaimCodes;
extern const pg::Statement kClaimFlowMails;
extern const pg::Statement kClaimOperatorMails;
extern const pg::Statement kEndCodes;
extern const pg::Statement kEndFlowMails;
extern const pg::Statement kEndOperatorMails;
extern const pg::Statement kBacklog;
}  // namespace sql

// A claimed row, whatever it is about.
struct MailRow {
  MailKind kind = MailKind::kCode;
  std::int64_t id = 0;
  std::int64_t token = 0;     // of the claim
  std::int64_t failures = 0;  // attempts that failed
  std::chrono::milliseconds age{0};
  TimePoint created_at;
  std::string address;
};

struct CodeMail {
  MailRow row;
  std::optional<std::string> salt;  // none: the code was used or replaced
  bool expired = false;
  std::string language;
};

// A person whose subscription asks for a mail.
struct Reader {
  std::string language;
  std::optional<std::string> remark;
  NotifyFilters filters;  // of a correction they do not count
};

struct FlowMail {
  MailRow row;
  std::int64_t email_id = 0;
  FlowRef ref;
  FlowTransition change;
  std::string initiator;
  std::optional<std::string> via;
  bool is_deliverable = true;
  std::optional<std::string> voided;  // why it is not to be sent any more
  std::vector<Reader> readers;        // empty: there is no subscription any more
};

struct OperatorMail {
  MailRow row;
  std::string type;
  std::string subject;
  TimePoint at;
  std::string data;  // JSON
};

struct Outgoing {
  std::vector<CodeMail> codes;
  std::vector<FlowMail> flows;
  std::vector<OperatorMail> operators;

  std::size_t size() const { return codes.size() + flows.size() + operators.size(); }
};

struct ClaimLimits {
  std::size_t codes = 0;
  std::size_t flows = 0;
  std::size_t operators = 0;
};
// Claims at most so many due mails of each kind for `duration`. Rows that another sender is claiming are left out, and
// so is a mail about a flow while an older one about it to the same address is not settled.
awaitable<Outgoing> claim_mails(pg::Pool& pool, ClaimLimits limits, std::chrono::milliseconds duration);

// Ends an attempt. False: the row is no longer under this claim, or was suppressed meanwhile.
struct MailEnd {
  MailKind kind = MailKind::kCode;
  std::int64_t id = 0;
  std::int64_t token = 0;
  SendDecision decision;
};
awaitable<std::vector<bool>> end_attempts(pg::Pool& pool, std::span<const MailEnd> ends);

// How many mails are due and not being sent, and for how long the oldest has been.
struct Backlog {
  std::int64_t mails = 0;  // at most kBacklogCounted of each kind
  std::chrono::milliseconds oldest{0};
};
inline constexpr std::int64_t kBacklogCounted = 10'000;
awaitable<Backlog> mail_backlog(pg::Pool& pool);

}  // namespace fencepost::notify
