#include "identity/api_key_store.hpp"

#include <cstring>

#include "pg/bytes.hpp"

namespace fencepost::identity {
namespace {

using pg::Statement;

constexpr Statement kInsert{"api_key_insert", R"(
  INSERT INTO api_key (key_id, label, secret_hash, scopes, signers, guilds, contracts, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  RETURNING created_at)"};

constexpr Statement kFind{"api_key_find", R"(
  SELECT key_id, label, secret_hash, to_json(scopes) AS scopes, to_json(signers) AS signers,
         to_json(guilds) AS guilds, to_json(contracts) AS contracts, created_at, expires_at, revoked_at, last_used_at
    FROM api_key
   WHERE key_id = $1)"};

constexpr Statement kList{"api_key_list", R"(
  SELECT key_id, label, secret_hash, to_json(scopes) AS scopes, to_json(signers) AS signers,
         to_json(guilds) AS guilds, to_json(contracts) AS contracts, created_at, expires_at, revoked_at, last_used_at
    FROM api_key
   ORDER BY created_at DESC, key_id DESC)"};

constexpr Statement kRevoke{"api_key_revoke", R"(
  UPDATE api_key
     SET revoked_at = clock_timestamp()
   WHERE key_id = $1
     AND revoked_at IS NULL)"};

constexpr Statement kTell{"api_key_tell", "SELECT pg_notify($1, $2)"};

constexpr Statement kTouch{"api_key_touch", R"(
  UPDATE api_key AS k
     SET last_used_at = u.used_at
    FROM unnest($1, $2) AS u(key_id, used_at)
   WHERE k.key_id = u.key_id
     AND (k.last_used_at IS NULL OR k.last_used_at < u.used_at))"};

std::vector<std::string> strings(const boost::json::value& array) {
  std::vector<std::string> out;
  for (const auto& item : array.as_array()) out.emplace_back(item.as_string());
  return out;
}

std::optional<std::vector<std::string>> optional_strings(const pg::Row& row, std::string_view column) {
  const auto array = row.get<std::optional<boost::json::value>>(column);
  return array ? std::optional(strings(*array)) : std::nullopt;
}

ApiKey read_key(const pg::Row& row) {
  ApiKey key;
  key.key_id = row.get<Uuid>("key_id");
  key.label = row.get<std::string>("label");
  const auto hash = row.get<pg::Bytes>("secret_hash");
  if (hash.size() != key.secret_hash.size()) {
    throw Exception(internal("bad_secret_hash", "api_key.secret_hash has a wrong length; expected 32 bytes"));
  }
  std::memcpy(key.secret_hash.data(), hash.data(), hash.size());
  key.scopes = strings(row.get<boost::json::value>("scopes"));
  key.signers = optional_strings(row, "signers");
  key.guilds = optional_strings(row, "guilds");
  key.contracts = optional_strings(row, "contracts");
  key.created_at = row.get<TimePoint>("created_at");
  key.expires_at = row.get<std::optional<TimePoint>>("expires_at");
  key.revoked_at = row.get<std::optional<TimePoint>>("revoked_at");
  key.last_used_at = row.get<std::optional<TimePoint>>("last_used_at");
  return key;
}

}  // namespace

awaitable<TimePoint> ApiKeyStore::insert(const ApiKey& key) {
  const auto hash = pg::to_bytes(key.secret_hash);
  const auto rows = co_await pool_.execute(kInsert, key.key_id, key.label, hash, key.scopes, key.signers, key.guilds,
                                           key.contracts, key.expires_at);
  co_return rows.one().get<TimePoint>("created_at");
}

awaitable<std::optional<ApiKey>> ApiKeyStore::find(const Uuid& key_id) {
  const auto rows = co_await pool_.query(kFind, key_id);
  if (rows.empty()) co_return std::nullopt;
  co_return read_key(rows.one());
}

awaitable<std::vector<ApiKey>> ApiKeyStore::list() {
  const auto rows = co_await pool_.query(kList);
  std::vector<ApiKey> keys;
  for (const auto row : rows) keys.push_back(read_key(row));
  co_return keys;
}

awaitable<bool> ApiKeyStore::revoke(const Uuid& key_id) {
  pg::Batch batch;
  batch.add(kRevoke, key_id).add(kTell, kApiKeyChannel, key_id.to_string());
  const auto results = co_await pool_.run(std::move(batch));
  co_return results[0].affected() == 1;
}

awaitable<> ApiKeyStore::touch(const std::vector<std::pair<Uuid, TimePoint>>& uses, std::chrono::milliseconds limit) {
  std::vector<Uuid> ids;
  std::vector<TimePoint> times;
  for (const auto& [id, time] : uses) {
    ids.push_back(id);
    times.push_back(time);
  }
  pg::Batch batch;
  batch.add(kTouch, ids, times).statement_timeout(limit);
  co_await pool_.run(std::move(batch), {.timeout = limit});
}

}  // namespace fencepost::identity
