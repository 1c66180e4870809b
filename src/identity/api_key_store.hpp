// Where API keys are kept. All of identity's SQL.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "identity/api_key.hpp"
#include "pg/pool.hpp"

namespace fencepost::identity {

// Told whenever a key changes, so that every node forgets what it remembered of it.
inline constexpr std::string_view kApiKeyChannel = "fencepost_api_key";

class ApiKeyStore {
 public:
  explicit ApiKeyStore(pg::Pool& pool) : pool_(pool) {}

  awaitable<> insert(const ApiKey& key);
  awaitable<std::optional<ApiKey>> find(const Uuid& key_id);
  // Newest first; revoked and expired ones too.
  awaitable<std::vector<ApiKey>> list();
  // False when there is no such key or it is revoked already.
  awaitable<bool> revoke(const Uuid& key_id);
  // Remembers the latest use of each; never moves a time back. Waits no longer than `limit`.
  awaitable<> touch(const std::vector<std::pair<Uuid, TimePoint>>& uses, std::chrono::milliseconds limit);

 private:
  pg::Pool& pool_;
};

}  // namespace fencepost::identity
