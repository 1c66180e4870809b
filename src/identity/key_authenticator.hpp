// Authenticates the callers of the HTTP server by `Authorization: Bearer fp_…`, or else by the secret in the path, on
// routes that have one.
//
// A key that was looked up is cached for `remember`. A notification that any key has changed makes every node drop its
// whole cache. If the notification is lost, the cache's lifetime bounds how long a revoked key is still accepted.
//
// Each key has a rate limit, counted in memory. Each address that presents unknown keys has one too, so that guessing
// keys costs the database little.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/token_bucket.hpp"
#include "http/auth.hpp"
#include "identity/api_key.hpp"
#include "identity/rate_limit.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::identity {

struct AuthenticatorOptions {
  std::uint32_t requests_per_second = 1000;  // for each key, on each node
  std::uint32_t burst = 2000;
  std::chrono::milliseconds remember{5000};
  std::size_t remember_at_most = 10'000;   // keys, and addresses
  std::uint32_t bad_keys_per_second = 20;  // from each address
  std::uint32_t bad_keys_burst = 100;
};

class KeyAuthenticator final : public http::Authenticator {
 public:
  KeyAuthenticator(pg::Database& database, const Clock& clock, const AuthenticatorOptions& options, Metrics& metrics);

  // Errors: kUnauthenticated "no_api_key", "bad_api_key", "api_key_revoked", "api_key_expired"; kRateLimited
  // "rate_limited" with retry_after. Any loop may call.
  awaitable<Result<http::Principal>> authenticate(const http::Request& request) override;
  // The same for the text of a key that came another way; `remote`: who presents it.
  awaitable<Result<http::Principal>> check(std::string_view text, const std::string& remote);
  // The caller of a key whose secret was presented before. Errors: "api_key_revoked", "api_key_expired", "bad_api_key"
  // when there is no such key, "rate_limited".
  awaitable<Result<http::Principal>> authenticate_as(Uuid key_id);

  // The key that the request presents, not checked: `Authorization: Bearer …`, or else the secret in the path.
  static std::optional<std::string_view> presented(const http::Request& request);

  // Drops the cached keys. Any thread may call.
  void forget_all() { epoch_.fetch_add(1); }

  // Stores when keys were last used. Called by a worker, on any loop.
  awaitable<> save_uses(std::chrono::milliseconds limit = std::chrono::seconds(10));

 private:
  using Instant = std::chrono::steady_clock::time_point;

  struct Known {
    std::shared_ptr<const ApiKey> key;
    Instant until;
    std::uint64_t epoch;
  };
  struct Account {
    TokenBucket bucket;
    std::optional<TimePoint> unsaved_use;
  };

  awaitable<std::shared_ptr<const ApiKey>> look_up(const Uuid& key_id);
  // first: the cached key, null when it must be looked up; second: whether this node has seen the key before.
  std::pair<std::shared_ptr<const ApiKey>, bool> recall(const Uuid& key_id);
  void remember(std::shared_ptr<const ApiKey> key, std::uint64_t epoch);
  Result<void> charge(const Uuid& key_id);
  Result<http::Principal> admit(const ApiKey& key);
  Result<http::Principal> refuse(Error error);
  Result<http::Principal> limit(Error error);

  pg::Database& database_;
  const Clock& clock_;
  AuthenticatorOptions options_;
  Metrics::Counter& accepted_total_;
  Metrics::Counter& refused_total_;
  Metrics::Counter& limited_total_;

  RateLimit guesses_;  // by address
  std::atomic<std::uint64_t> epoch_{0};
  std::mutex mutex_;  // held only to read or change the maps, never across an await
  std::unordered_map<Uuid, Known> known_;
  std::unordered_map<Uuid, Account> accounts_;
};

}  // namespace fencepost::identity
