#include "identity/login_store.hpp"

#include "pg/bytes.hpp"

namespace fencepost::identity {
namespace {

using pg::Statement;

constexpr Statement kSecret{"installation_secret", "SELECT encode(value, 'hex') AS value FROM installation_secret"};

constexpr Statement kBeginWallet{"session_begin_wallet", R"(
  WITH used AS (
    INSERT INTO login_nonce (nonce, expires_at)
    SELECT $1::text, $2::timestamptz
     WHERE $2::timestamptz > clock_timestamp()
    ON CONFLICT (nonce) DO NOTHING
    RETURNING nonce
  ),
  person AS (
    INSERT INTO users (wallet_address)
    SELECT $3
      FROM used
    ON CONFLICT (wallet_address) DO UPDATE
       SET last_login_at = clock_timestamp()
    RETURNING id
  )
  INSERT INTO session (token_hash, user_id, expires_at)
  SELECT $4, id, clock_timestamp() + make_interval(secs => $5 / 1000.0)
    FROM person
  RETURNING expires_at)"};

constexpr Statement kBeginKey{"session_begin_key", R"(
  INSERT INTO session (token_hash, key_id, expires_at)
  VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3 / 1000.0))
  RETURNING expires_at)"};

// The caller's oldest sessions over the limit.
constexpr Statement kTrim{"session_trim", R"(
  DELETE FROM session
   WHERE token_hash IN (SELECT o.token_hash
                          FROM session AS s
                          JOIN session AS o ON o.user_id = s.user_id OR o.key_id = s.key_id
                         WHERE s.token_hash = $1
                         ORDER BY o.created_at DESC
                        OFFSET $2))"};

// A few at each login: they are as many as logins. A day later than they expire, and never one that another login
// holds: the clocks of nodes differ.
constexpr Statement kForgetNonces{"login_nonce_forget", R"(
  DELETE FROM login_nonce
   WHERE nonce IN (SELECT nonce
                     FROM login_nonce
                    WHERE expires_at < clock_timestamp() - interval '1 day'
                    ORDER BY expires_at
                    LIMIT 10
                      FOR UPDATE SKIP LOCKED))"};
constexpr Statement kForgetSessions{"session_forget", R"(
  DELETE FROM session
   WHERE token_hash IN (SELECT token_hash
                          FROM session
                         WHERE expires_at < clock_timestamp()
                         ORDER BY expires_at
                         LIMIT 10
                           FOR UPDATE SKIP LOCKED))"};

constexpr Statement kFind{"session_find", R"(
  SELECT s.user_id, coalesce(u.wallet_address, '') AS wallet, s.key_id, s.expires_at,
         s.last_seen_at < clock_timestamp() - interval '1 minute' AS unnoted
    FROM session AS s
    LEFT JOIN users AS u ON u.id = s.user_id
   WHERE s.token_hash = $1
     AND s.expires_at > clock_timestamp()
     AND s.last_seen_at > clock_timestamp() - make_interval(secs => $2 / 1000.0))"};

constexpr Statement kNoteUse{"session_note_use", R"(
  UPDATE session
     SET last_seen_at = clock_timestamp()
   WHERE token_hash = $1
     AND last_seen_at < clock_timestamp() - interval '1 minute')"};

constexpr Statement kEnd{"session_end", "DELETE FROM session WHERE token_hash = $1"};
constexpr Statement kEndAll{"session_end_all", R"(
  DELETE FROM session AS s
   USING session AS mine
   WHERE mine.token_hash = $1
     AND (s.user_id = mine.user_id OR s.key_id = mine.key_id))"};

awaitable<std::optional<TimePoint>> begin(pg::Pool& pool, pg::Batch batch, Digest256 token_hash) {
  batch.add(kTrim, pg::to_bytes(token_hash), kMaxSessions).add(kForgetNonces).add(kForgetSessions);
  const auto results = co_await pool.run(std::move(batch));
  if (results[0].empty()) co_return std::nullopt;
  co_return results[0].one().get<TimePoint>("expires_at");
}

}  // namespace

awaitable<Secret> installation_secret(pg::Pool& pool) {
  const auto rows = co_await pool.query(kSecret);
  co_return Secret::take(rows.one().get<std::string>("value"));
}

awaitable<std::optional<TimePoint>> begin_wallet_session(pg::Pool& pool, WalletLogin login, Digest256 token_hash,
                                                         std::chrono::milliseconds lifetime) {
  pg::Batch batch;
  batch.add(kBeginWallet, login.nonce, login.nonce_expires_at, login.wallet, pg::to_bytes(token_hash),
            lifetime.count());
  co_return co_await begin(pool, std::move(batch), token_hash);
}

awaitable<TimePoint> begin_key_session(pg::Pool& pool, Uuid key_id, Digest256 token_hash,
                                       std::chrono::milliseconds lifetime) {
  pg::Batch batch;
  batch.add(kBeginKey, pg::to_bytes(token_hash), key_id, lifetime.count());
  co_return (co_await begin(pool, std::move(batch), token_hash)).value();
}

awaitable<std::optional<Session>> find_session(pg::Pool& pool, Digest256 token_hash, std::chrono::milliseconds idle) {
  const auto hash = pg::to_bytes(token_hash);
  const auto rows = co_await pool.query(kFind, hash, idle.count());
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.one();
  Session session{.user_id = row.get<std::optional<std::int64_t>>("user_id"),
                  .wallet = row.get<std::string>("wallet"),
                  .key_id = row.get<std::optional<Uuid>>("key_id"),
                  .expires_at = row.get<TimePoint>("expires_at")};
  if (row.get<bool>("unnoted")) co_await pool.execute(kNoteUse, hash);
  co_return session;
}

awaitable<> end_session(pg::Pool& pool, Digest256 token_hash, bool everywhere) {
  co_await pool.execute(everywhere ? kEndAll : kEnd, pg::to_bytes(token_hash));
}

}  // namespace fencepost::identity
