// The tables of people, used nonces and sessions. All functions throw as pg::Pool does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/secret.hpp"
#include "base/uuid.hpp"
#include "pg/pool.hpp"

namespace fencepost::identity {

// A session that is valid now. Exactly one of user_id and key_id is set.
struct Session {
  std::optional<std::int64_t> user_id;
  std::string wallet;  // of the user; empty for a key's session
  std::optional<Uuid> key_id;
  TimePoint expires_at;
};

// The sessions of a caller beyond so many end, the oldest first.
inline constexpr int kMaxSessions = 20;

// What marks things as ours: the same for all nodes, and never the same for two installations.
awaitable<Secret> installation_secret(pg::Pool& pool);

struct WalletLogin {
  std::string nonce;
  TimePoint nonce_expires_at;
  std::string wallet;  // stored form
};
// Uses up the nonce, makes the person if need be, and begins a session, all of it or nothing. Returns when the session
// expires; nothing if the nonce was used before.
awaitable<std::optional<TimePoint>> begin_wallet_session(pg::Pool& pool, WalletLogin login, Digest256 token_hash,
                                                         std::chrono::milliseconds lifetime);
awaitable<TimePoint> begin_key_session(pg::Pool& pool, Uuid key_id, Digest256 token_hash,
                                       std::chrono::milliseconds lifetime);

// The session with that token, and notes that it was used. Nothing if there is none, it has expired, or was not used
// for `idle`.
awaitable<std::optional<Session>> find_session(pg::Pool& pool, Digest256 token_hash, std::chrono::milliseconds idle);

// With `everywhere`, also ends all other sessions of the same caller.
awaitable<> end_session(pg::Pool& pool, Digest256 token_hash, bool everywhere);

}  // namespace fencepost::identity
