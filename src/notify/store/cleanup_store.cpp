#include "notify/store/cleanup_store.hpp"

#include "notify/store/address_store.hpp"

namespace fencepost::notify {

using pg::Statement;

// The rows are looked at without locks, and checked again once they are locked. A row that gets a reference between the
// check and the delete fails the statement (foreign key), and the worker tries again.
#define FENCEPOST_REMOVE_OLD(table, condition)                                                                 \
  "WITH seen AS MATERIALIZED (SELECT id, created_at < clock_timestamp() - make_interval(secs => $3 / 1000.0) " \
  "AS is_old FROM " table                                                                                      \
  " WHERE id > $1 ORDER BY id LIMIT $2), "                                                                     \
  "locked AS MATERIALIZED (SELECT id FROM " table                                                              \
  " AS l WHERE id = ANY (ARRAY(SELECT id FROM seen WHERE is_old)) " condition                                  \
  " FOR UPDATE SKIP LOCKED), "                                                                                 \
  "removed AS (DELETE FROM " table                                                                             \
  " WHERE id = ANY (ARRAY(SELECT id FROM locked)) RETURNING id) "                                              \
  "SELECT (SELECT count(*) FROM removed) AS removed, "                                                         \
  "(SELECT CASE WHEN count(*) = $2 AND bool_and(is_old) THEN max(id) END FROM seen) AS next"

#define FENCEPOST_IS_SETTLED "AND l.send_status IN ('success', 'dead', 'suppressed') "

// OFFSET 0, also below, keeps the planner from reading the other table as a whole.
const Statement sql::kRemoveFlowMails{
    "mail_remove_flow_mails",
    FENCEPOST_REMOVE_OLD("email_send_logs", FENCEPOST_IS_SETTLED
                         "AND NOT EXISTS (SELECT FROM email_send_logs AS c WHERE c.corrects = l.id OFFSET 0)")};

const Statement sql::kRemoveOperatorMails{"mail_remove_operator_mails",
                                          FENCEPOST_REMOVE_OLD("operator_email_logs", FENCEPOST_IS_SETTLED)};

const Statement sql::kRemoveCodes{"mail_remove_codes", FENCEPOST_REMOVE_OLD("email_verification_codes", "")};

const Statement sql::kRemoveAddresses{
    "mail_remove_addresses",
    FENCEPOST_REMOVE_OLD("emails",
                         "AND NOT EXISTS (SELECT FROM user_emails AS u WHERE u.email_id = l.id OFFSET 0) "
                         "AND NOT EXISTS (SELECT FROM email_send_logs AS m WHERE m.email_id = l.id OFFSET 0) "
                         "AND NOT EXISTS (SELECT FROM email_code_request AS r WHERE r.email_id = l.id OFFSET 0)")};

awaitable<Removed> remove_old(pg::Pool& pool, const Statement& statement, std::int64_t after, std::int64_t limit,
                              std::chrono::milliseconds age) {
  const auto rows = co_await pool.execute(statement, after, limit, std::int64_t{age.count()});
  const auto row = rows.one();
  co_return Removed{.rows = row.get<std::int64_t>("removed"), .next = row.get<std::optional<std::int64_t>>("next")};
}

awaitable<std::int64_t> forget_code_requests(pg::Pool& pool, std::int64_t limit) {
  const auto result = co_await pool.execute(sql::kForgetRequests, limit);
  co_return result.affected();
}

}  // namespace fencepost::notify
