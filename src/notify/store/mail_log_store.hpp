// The mails about flows, for operators who look for one. Functions throw as pg::Pool does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "notify/model/flow_facts.hpp"
#include "notify/model/send_status.hpp"
#include "pg/pool.hpp"

namespace fencepost::notify {

namespace sql {
extern const pg::Statement kMailsNewest;
extern const pg::Statement kMailsOfEmail;
extern const pg::Statement kMailsOfContracts;
extern const pg::Statement kMailsWaiting;
extern const pg::Statement kMailsUnsent;
}  // namespace sql

struct LoggedMail {
  std::int64_t id = 0;
  std::string email;
  FlowRef ref;
  FlowTransition change;
  SendStatus status = SendStatus::kPending;
  std::int64_t retries = 0;
  std::optional<std::string> error;
  TimePoint created_at;
  std::optional<TimePoint> sent_at;
};

struct MailLogFilter {
  std::optional<SendStatus> status;
  std::optional<std::string> email;
  std::optional<std::vector<std::string>> contracts;  // an empty list: no mail
  std::optional<std::int64_t> before;                 // an id
};

// Newest first.
awaitable<std::vector<LoggedMail>> list_mails(pg::Pool& pool, MailLogFilter filter, std::size_t limit);

}  // namespace fencepost::notify
