#include "notify/store/mail_log_store.hpp"

#include <limits>

namespace fencepost::notify {

using pg::Statement;

#define FENCEPOST_LOGGED_MAIL                                                                                \
  "l.id, (SELECT e.email FROM emails AS e WHERE e.id = l.email_id) AS email, l.timelock_standard, "          \
  "l.chain_id, l.contract_address, l.flow_id, l.generation, l.status_from, l.status_to, l.kind, l.tx_hash, " \
  "l.changed_at, l.send_status, l.retry_count, l.error_message, l.created_at, l.sent_at "

// $1 the id before which the page begins, $2 its size, $3 a status or NULL. `order` is that of the index that is
// walked: `l.id + 0` for all but the primary key (db/migrations/0018_mail.sql).
#define FENCEPOST_MAIL_LOG(mails, condition, order)                                                            \
  "SELECT " FENCEPOST_LOGGED_MAIL "FROM " mails " AS l WHERE " condition " AND " order " < $1 ORDER BY " order \
  " DESC LIMIT $2"

// A comparison with a parameter that is NULL is not true, so it excludes nothing.
#define FENCEPOST_HAS_STATUS "CASE WHEN l.send_status <> $3::text THEN false ELSE true END"

const Statement sql::kMailsNewest{"mail_log_newest",
                                  FENCEPOST_MAIL_LOG("email_send_logs", FENCEPOST_HAS_STATUS, "l.id")};

// $4 the address, $5 contracts or NULL.
const Statement sql::kMailsOfEmail{
    "mail_log_of_email",
    FENCEPOST_MAIL_LOG("email_send_logs",
                       "l.email_id = (SELECT a.id FROM emails AS a WHERE a.email = $4) "
                       "AND CASE WHEN l.contract_address <> ALL ($5::text[]) OR l.send_status <> $3::text "
                       "THEN false ELSE true END",
                       "l.id + 0")};

// $4 contracts. A page of each, of which the newest make up the page: the index has the order within one contract.
const Statement sql::kMailsOfContracts{"mail_log_of_contracts", "SELECT " FENCEPOST_LOGGED_MAIL R"(
    FROM (SELECT DISTINCT unnest($4::text[]) AS address) AS c
   CROSS JOIN LATERAL (SELECT *
                         FROM email_send_logs AS l
                        WHERE l.contract_address = c.address
                          AND l.id + 0 < $1
                          AND )" FENCEPOST_HAS_STATUS R"(
                        ORDER BY l.id + 0 DESC
                        LIMIT $2) AS l
   ORDER BY l.id DESC
   LIMIT $2)"};

// All mails that wait, sorted: there are few.
const Statement sql::kMailsWaiting{
    "mail_log_waiting",
    FENCEPOST_MAIL_LOG("(SELECT * FROM email_send_logs WHERE send_status IN ('pending', 'failed') OFFSET 0)",
                       FENCEPOST_HAS_STATUS, "l.id")};

const Statement sql::kMailsUnsent{
    "mail_log_unsent",
    FENCEPOST_MAIL_LOG("email_send_logs", "l.send_status IN ('dead', 'suppressed') AND l.send_status = $3::text",
                       "l.id + 0")};

namespace {

LoggedMail mail_of(const pg::Row& row) {
  return {.id = row.get<std::int64_t>("id"),
          .email = row.get<std::string>("email"),
          .ref = {.standard = row.get<std::string>("timelock_standard"),
                  .chain_id = row.get<std::int64_t>("chain_id"),
                  .contract = row.get<std::string>("contract_address"),
                  .flow_id = row.get<std::string>("flow_id"),
                  .generation = row.get<std::int64_t>("generation")},
          .change = {.from = row.get<std::optional<std::string>>("status_from"),
                     .to = row.get<std::string>("status_to"),
                     .correction = row.get<std::string_view>("kind") == "correction",
                     .tx_hash = row.get<std::optional<std::string>>("tx_hash"),
                     .changed_at = row.get<TimePoint>("changed_at")},
          .status = kSendStatus.find(row.get<std::string_view>("send_status")).value(),
          .retries = row.get<std::int64_t>("retry_count"),
          .error = row.get<std::optional<std::string>>("error_message"),
          .created_at = row.get<TimePoint>("created_at"),
          .sent_at = row.get<std::optional<TimePoint>>("sent_at")};
}

awaitable<pg::ResultSet> page(pg::Pool& pool, const MailLogFilter& filter, std::uint64_t size) {
  const auto before = filter.before.value_or(std::numeric_limits<std::int64_t>::max());
  std::optional<std::string_view> status;
  if (filter.status) status = kSendStatus.name(*filter.status);
  if (filter.email) return pool.query(sql::kMailsOfEmail, before, size, status, *filter.email, filter.contracts);
  if (filter.contracts) return pool.query(sql::kMailsOfContracts, before, size, status, *filter.contracts);
  if (filter.status == SendStatus::kPending || filter.status == SendStatus::kFailed) {
    return pool.query(sql::kMailsWaiting, before, size, status);
  }
  if (filter.status == SendStatus::kDead || filter.status == SendStatus::kSuppressed) {
    return pool.query(sql::kMailsUnsent, before, size, status);
  }
  return pool.query(sql::kMailsNewest, before, size, status);
}

}  // namespace

awaitable<std::vector<LoggedMail>> list_mails(pg::Pool& pool, MailLogFilter filter, std::size_t limit) {
  const auto rows = co_await page(pool, filter, limit);
  std::vector<LoggedMail> out;
  for (const auto row : rows) out.push_back(mail_of(row));
  co_return out;
}

}  // namespace fencepost::notify
