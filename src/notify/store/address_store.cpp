#include "notify/store/address_store.hpp"

#include <fmt/format.h>

#include "http/errors.hpp"
#include "pg/bytes.hpp"

namespace fencepost::notify {

using pg::Statement;

const Statement sql::kLockUser{"mail_lock_user", "SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE"};

// `whose`: a condition on user_emails. OFFSET 0, and `id + 0` below, keep the planner from walking along the primary
// key.
#define FENCEPOST_USER_EMAILS(whose)                                                                    \
  "SELECT ue.id, ue.email_id, e.email, ue.remark, ue.is_verified, ue.last_verified_at, ue.created_at, " \
  "NOT ue.is_verified OR e.is_deliverable AS is_deliverable "                                           \
  "FROM (SELECT * FROM user_emails WHERE user_id = $1 " whose                                           \
  "OFFSET 0) AS ue "                                                                                    \
  "CROSS JOIN LATERAL (SELECT email, is_deliverable FROM emails WHERE id = ue.email_id LIMIT 1) AS e "

constexpr Statement kFindByAddress{"mail_email_by_address",
                                   FENCEPOST_USER_EMAILS("AND email_id = (SELECT id FROM emails WHERE email = $2) ")};
constexpr Statement kFindById{"mail_email_by_id", FENCEPOST_USER_EMAILS("AND id = $2 ")};
const Statement sql::kListEmails{"mail_emails", FENCEPOST_USER_EMAILS("") "ORDER BY ue.id LIMIT $2"};

// The ages are in milliseconds. `mine`: the person's own codes for this address.
const Statement sql::kCodeRequests{"mail_code_requests", R"(
  SELECT count(*) AS of_user,
         count(*) FILTER (WHERE is_mine) AS mine,
         extract(epoch FROM clock_timestamp() - max(at) FILTER (WHERE is_mine)) * 1000 AS newest_age,
         extract(epoch FROM clock_timestamp() - min(at)) * 1000 AS oldest_age,
         extract(epoch FROM clock_timestamp() - min(at) FILTER (WHERE is_mine)) * 1000 AS oldest_mine_age
    FROM (SELECT at, email_id = (SELECT id FROM emails WHERE email = $2) AS is_mine
            FROM email_code_request
           WHERE user_id = $1
             AND at > clock_timestamp() - interval '1 day') AS r)"};

constexpr Statement kCountEmails{"mail_count_emails", "SELECT count(*) AS emails FROM user_emails WHERE user_id = $1"};

// The update locks an address that exists, so that its codes are counted one request after the other.
constexpr Statement kAddEmail{"mail_add_email", R"(
  WITH address AS (
    INSERT INTO emails (email)
    VALUES ($2)
    ON CONFLICT (email) DO UPDATE SET updated_at = emails.updated_at
    RETURNING id
  )
  INSERT INTO user_emails (user_id, email_id, remark)
  SELECT $1, id, $3
    FROM address
  RETURNING id)"};

constexpr Statement kLockAddress{"mail_lock_address", "SELECT FROM emails WHERE id = $1 FOR NO KEY UPDATE"};

const Statement sql::kVoidCodes{"mail_void_codes", R"(
  UPDATE email_verification_codes
     SET is_used = true,
         salt = NULL,
         send_status = CASE WHEN send_status IN ('pending', 'failed') THEN 'suppressed' ELSE send_status END
   WHERE user_email_id = $1
     AND NOT is_used)"};

// A code that is not mailed has no salt, because the salt is there to write the mail, and a random hash: no digits
// match it. Guesses are limited per code, and anyone can make wallets, so a code without a mail would add guesses.
const Statement sql::kAddCode{"mail_add_code", R"(
  INSERT INTO email_verification_codes (user_email_id, code_hash, salt, expires_at, send_status)
  SELECT $1, CASE WHEN allowed THEN $2::bytea ELSE sha256(uuid_send(gen_random_uuid())) END,
         CASE WHEN allowed THEN $3::bytea END, clock_timestamp() + make_interval(secs => $4 / 1000.0),
         CASE WHEN allowed THEN 'pending' ELSE 'suppressed' END
    FROM (SELECT count(*) < $6 AS allowed
            FROM email_code_request
           WHERE email_id = $5
             AND at > clock_timestamp() - interval '1 day') AS r)"};

constexpr Statement kNoteRequest{"mail_note_code_request",
                                 "INSERT INTO email_code_request (user_id, email_id) VALUES ($1, $2)"};

// $1 how many.
const Statement sql::kForgetRequests{"mail_forget_code_requests", R"(
  DELETE FROM email_code_request
   WHERE id = ANY (ARRAY(SELECT id
                           FROM email_code_request
                          WHERE at < (SELECT clock_timestamp()) - interval '2 days'
                          ORDER BY at
                          LIMIT $1
                            FOR UPDATE SKIP LOCKED)))"};

// The try is counted before the code is compared: requests at the same time cannot share one.
const Statement sql::kTakeTry{"mail_take_code_try", R"(
  UPDATE email_verification_codes AS c
     SET attempt_count = c.attempt_count + 1
   WHERE c.id = (SELECT n.id
                   FROM email_verification_codes AS n
                  WHERE n.user_email_id = (SELECT ue.id FROM user_emails AS ue WHERE ue.id = $2 AND ue.user_id = $1)
                  ORDER BY n.id + 0 DESC
                  LIMIT 1)
     AND NOT c.is_used
     AND c.expires_at > clock_timestamp()
     AND c.attempt_count < 5
  RETURNING encode(c.code_hash, 'hex') AS code_hash)"};

const Statement sql::kMarkVerified{"mail_mark_verified", R"(
  WITH code AS (
    UPDATE email_verification_codes
       SET is_used = true,
           salt = NULL,
           send_status = CASE WHEN send_status IN ('pending', 'failed') THEN 'suppressed' ELSE send_status END
     WHERE user_email_id = $2
       AND code_hash = $3
       AND NOT is_used
       AND expires_at > clock_timestamp()
    RETURNING user_email_id
  ),
  verified AS (
    UPDATE user_emails AS ue
       SET is_verified = true,
           last_verified_at = clock_timestamp(),
           updated_at = clock_timestamp()
     WHERE ue.id = (SELECT user_email_id FROM code)
       AND ue.user_id = $1
    RETURNING ue.email_id
  )
  UPDATE emails AS e
     SET is_deliverable = true,
         updated_at = clock_timestamp()
   WHERE e.id = (SELECT email_id FROM verified)
  RETURNING e.id)"};

constexpr Statement kChangeRemark{"mail_change_remark", R"(
  UPDATE user_emails
     SET remark = $3,
         updated_at = clock_timestamp()
   WHERE user_id = $1
     AND id = $2)"};

constexpr Statement kRemoveEmail{"mail_remove_email", "DELETE FROM user_emails WHERE user_id = $1 AND id = $2"};

constexpr Statement kLanguage{"mail_language", "SELECT language FROM users WHERE id = $1"};
constexpr Statement kSetLanguage{"mail_set_language", "UPDATE users SET language = $2 WHERE id = $1"};

namespace {

UserEmail email_of(const pg::Row& row) {
  return {.id = row.get<std::int64_t>("id"),
          .email_id = row.get<std::int64_t>("email_id"),
          .email = row.get<std::string>("email"),
          .remark = row.get<std::optional<std::string>>("remark"),
          .is_verified = row.get<bool>("is_verified"),
          .last_verified_at = row.get<std::optional<TimePoint>>("last_verified_at"),
          .is_deliverable = row.get<bool>("is_deliverable"),
          .created_at = row.get<TimePoint>("created_at")};
}

std::optional<UserEmail> email_in(const pg::ResultSet& rows) {
  return rows.empty() ? std::nullopt : std::optional(email_of(rows.one()));
}

constexpr std::int64_t kForgetAtOnce = 10;  // with each request: as many go as come

// How long until something that is `age_ms` old is as old as `until`.
std::chrono::seconds wait_for(std::chrono::milliseconds until, double age_ms) {
  const auto left = until - std::chrono::milliseconds(static_cast<std::int64_t>(age_ms));
  return std::max(std::chrono::ceil<std::chrono::seconds>(left), std::chrono::seconds(1));
}

}  // namespace

awaitable<> lock_user(pg::Transaction& tx, std::int64_t user_id) {
  co_await tx.query(sql::kLockUser, user_id);
}

awaitable<std::optional<UserEmail>> find_email(pg::Transaction& tx, std::int64_t user_id, std::string email) {
  co_return email_in(co_await tx.query(kFindByAddress, user_id, email));
}

awaitable<std::optional<UserEmail>> find_email(pg::Transaction& tx, std::int64_t user_id, std::int64_t id) {
  co_return email_in(co_await tx.query(kFindById, user_id, id));
}

awaitable<std::optional<UserEmail>> find_email(pg::Pool& pool, std::int64_t user_id, std::int64_t id) {
  co_return email_in(co_await pool.query(kFindById, user_id, id));
}

awaitable<std::vector<UserEmail>> list_emails(pg::Pool& pool, std::int64_t user_id) {
  std::vector<UserEmail> out;
  const auto rows = co_await pool.query(sql::kListEmails, user_id, kMaxEmailsOfUser);
  for (const auto row : rows) out.push_back(email_of(row));
  co_return out;
}

awaitable<Result<void>> may_ask_for_code(pg::Transaction& tx, std::int64_t user_id, std::string address,
                                         const CodeLimits& limits) {
  const auto rows = co_await tx.query(sql::kCodeRequests, user_id, address);
  const auto row = rows.one();
  const auto newest = row.get<std::optional<double>>("newest_age");
  if (newest && *newest < static_cast<double>(limits.resend_interval.count())) {
    co_return fail(http::rate_limited("code_too_soon", "A code was sent a moment ago: wait before asking for another.")
                       .after(wait_for(limits.resend_interval, *newest)));
  }
  if (row.get<std::int64_t>("mine") >= limits.per_address_per_day) {
    co_return fail(http::rate_limited("too_many_codes", "This address got as many codes as it may get in a day.")
                       .after(wait_for(std::chrono::days(1), row.get<double>("oldest_mine_age"))));
  }
  if (row.get<std::int64_t>("of_user") >= limits.per_user_per_day) {
    co_return fail(http::rate_limited("too_many_codes", "You asked for as many codes as you may in a day.")
                       .after(wait_for(std::chrono::days(1), row.get<double>("oldest_age"))));
  }
  co_return Result<void>{};
}

awaitable<Result<UserEmail>> add_email(pg::Transaction& tx, std::int64_t user_id, std::string address,
                                       std::optional<std::string> remark) {
  const auto counted = co_await tx.query(kCountEmails, user_id);
  if (counted.one().get<std::int64_t>("emails") >= kMaxEmailsOfUser) {
    co_return fail(
        conflict("too_many_emails",
                 fmt::format("You have {} addresses, which is the most: remove one first.", kMaxEmailsOfUser)));
  }
  const auto added = co_await tx.query(kAddEmail, user_id, address, remark);
  const auto id = added.one().get<std::int64_t>("id");
  co_return (co_await find_email(tx, user_id, id)).value();
}

awaitable<> add_code(pg::Transaction& tx, std::int64_t user_id, const UserEmail& email, NewCode code,
                     const CodeLimits& limits) {
  pg::Batch batch;
  batch.add(sql::kVoidCodes, email.id)
      .add(kLockAddress, email.email_id)
      .add(sql::kAddCode, email.id, pg::to_bytes(code.hash), pg::to_bytes(code.salt), limits.ttl.count(),
           email.email_id, limits.per_address_per_day)
      .add(kNoteRequest, user_id, email.email_id)
      .add(sql::kForgetRequests, kForgetAtOnce);
  co_await tx.run(std::move(batch));
}

awaitable<std::optional<std::string>> take_try(pg::Pool& pool, std::int64_t user_id, std::int64_t id) {
  const auto rows = co_await pool.execute(sql::kTakeTry, user_id, id);
  if (rows.empty()) co_return std::nullopt;
  co_return rows.one().get<std::string>("code_hash");
}

awaitable<bool> mark_verified(pg::Pool& pool, std::int64_t user_id, std::int64_t id, Digest256 hash) {
  pg::Batch batch;
  batch.add(sql::kLockUser, user_id).add(sql::kMarkVerified, user_id, id, pg::to_bytes(hash));
  const auto results = co_await pool.run(std::move(batch));
  co_return !results[1].empty();
}

awaitable<bool> change_remark(pg::Pool& pool, std::int64_t user_id, std::int64_t id,
                              std::optional<std::string> remark) {
  const auto result = co_await pool.execute(kChangeRemark, user_id, id, remark);
  co_return result.affected() > 0;
}

awaitable<bool> remove_email(pg::Pool& pool, std::int64_t user_id, std::int64_t id) {
  // The person first: the delete locks user_emails and then the codes, mark_verified in the other order.
  pg::Batch batch;
  batch.add(sql::kLockUser, user_id).add(kRemoveEmail, user_id, id);
  const auto results = co_await pool.run(std::move(batch));
  co_return results[1].affected() > 0;
}

awaitable<std::string> language_of(pg::Pool& pool, std::int64_t user_id) {
  const auto rows = co_await pool.query(kLanguage, user_id);
  co_return rows.one().get<std::string>("language");
}

awaitable<> set_language(pg::Pool& pool, std::int64_t user_id, std::string language) {
  co_await pool.execute(kSetLanguage, user_id, language);
}

}  // namespace fencepost::notify
