// The table of API keys. Holds all SQL of the identity module.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "identity/api_key.hpp"
#include "pg/pool.hpp"

namespace fencepost::identity {

// The channel that is notified whenever a key changes, so that every node drops its cached keys.
inline constexpr std::string_view kApiKeyChannel = "fencepost_api_key";

class ApiKeyStore {
 public:
  explicit ApiKeyStore(pg::Pool& pool) : pool_(pool) {}

  // Returns the key's created_at, by the database's clock.
  awaitable<TimePoint> insert(const ApiKey& key);
  awaitable<std::optional<ApiKey>> find(const Uuid& key_id);
  // All keys, newest first, including revoked and expired ones.
  awaitable<std::vector<ApiKey>> list();
  // False when there is no such key or it is already revoked.
  awaitable<bool> revoke(const Uuid& key_id);
  // Stores the last use of each key; never replaces a later time by an earlier one. Waits no longer than `limit`.
  awaitable<> touch(const std::vector<std::pair<Uuid, TimePoint>>& uses, std::chrono::milliseconds limit);

 private:
  pg::Pool& pool_;
};

}  // namespace fencepost::identity
