#include "outbox/webhook/webhook_store.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "base/json_reader.hpp"
#include "outbox/delivery/consumer_store.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;
using pg::Statement;

pg::Bytes bytes_of(const Secret& secret) {
  const auto view = std::as_bytes(std::span(secret.reveal()));
  return {view.begin(), view.end()};
}

Secret secret_of(pg::Bytes&& bytes) {
  const Secret secret(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::ranges::fill(bytes, std::byte{0});
  return secret;
}

std::string restrictions_text(const http::Restrictions& restrictions) {
  json::object out;
  for (const auto& [kind, ids] : restrictions) out[kind] = json::value_from(ids);
  return json::serialize(out);
}

http::Restrictions read_restrictions(const json::value& value) {
  http::Restrictions out;
  for (const auto& [kind, ids] : value.as_object())
    out[std::string(kind)] = json::value_to<std::vector<std::string>>(ids);
  return out;
}

Webhook read_webhook(const EventCatalog& catalog, const pg::Row& row) {
  const auto filter = row.get<json::value>("filter");
  const auto scopes = row.get<json::value>("scopes");
  Webhook webhook{.id = row.get<Uuid>("id"),
                  .url = row.get<std::string>("url"),
                  .description = row.get<std::string>("description"),
                  .filter = read_event_filter(catalog, JsonReader(filter)),
                  .batch = row.get<std::size_t>("batch"),
                  .reader = {.id = row.get<std::string>("created_by"),
                             .label = {},
                             .scopes = json::value_to<std::vector<std::string>>(scopes),
                             .restrictions = read_restrictions(row.get<json::value>("restrictions"))},
                  .state = kWebhookStates.find(row.get<std::string_view>("state")).value(),
                  .disabled_reason = row.get<std::optional<std::string>>("disabled_reason"),
                  .created_at = row.get<TimePoint>("created_at"),
                  .updated_at = row.get<TimePoint>("updated_at"),
                  .old_secret_until = row.get<std::optional<TimePoint>>("old_secret_until"),
                  .position = row.get<std::int64_t>("position"),
                  .waiting = row.get<std::int64_t>("waiting"),
                  .dead_letters = row.get<std::int64_t>("dead"),
                  .failing_since = row.get<std::optional<TimePoint>>("failing_since"),
                  .last_error = row.get<std::optional<std::string>>("last_error")};
  return webhook;
}

// The lock makes concurrent creates count each other.
constexpr Statement kLockWebhooks{"webhook_lock", "SELECT pg_advisory_xact_lock(hashtext('webhook'))"};

constexpr Statement kInsertWebhook{"webhook_insert", R"(
  INSERT INTO webhook (id, url, description, filter, batch, scopes, restrictions, secret, created_by)
  SELECT $1, $2, $3, $4::jsonb, $5::integer, $6::text[], $7::jsonb, $8::bytea, $9
   WHERE (SELECT count(*) FROM webhook) < $10::bigint)"};

constexpr Statement kInsertConsumer{"webhook_insert_consumer", R"(
  INSERT INTO event_consumer (consumer, position)
  SELECT 'webhook/' || id, $2::bigint
    FROM webhook
   WHERE id = $1
      ON CONFLICT DO NOTHING)"};

}  // namespace

awaitable<bool> insert_webhook(pg::Pool& pool, Webhook webhook, Secret key, std::int64_t position, std::size_t limit) {
  pg::Batch batch;
  batch.add(kLockWebhooks);
  batch.add(kInsertWebhook, webhook.id, webhook.url, webhook.description, json::serialize(to_json(webhook.filter)),
            webhook.batch, webhook.reader.scopes, restrictions_text(webhook.reader.restrictions), bytes_of(key),
            webhook.reader.audit_name(), limit);
  batch.add(kInsertConsumer, webhook.id, position).add(sql::kAnnounceConsumers);
  const auto results = co_await pool.run(std::move(batch));
  co_return results[1].affected() == 1;
}

namespace {

#define FENCEPOST_WEBHOOK_COLUMNS                                                                              \
  "w.id, w.url, w.description, w.filter, w.batch, to_jsonb(w.scopes) AS scopes, w.restrictions, w.state, "     \
  "w.disabled_reason, w.created_by, w.created_at, w.updated_at, c.position, c.failing_since, c.last_error, "   \
  "CASE WHEN w.old_secret_until > clock_timestamp() THEN w.old_secret_until END AS old_secret_until, "         \
  "(SELECT count(*) FROM webhook_backlog AS b WHERE b.webhook_id = w.id AND b.state = 'waiting') AS waiting, " \
  "(SELECT count(*) FROM webhook_backlog AS b WHERE b.webhook_id = w.id AND b.state = 'dead') AS dead "

constexpr Statement kFindWebhook{"webhook_find", R"(
  SELECT )" FENCEPOST_WEBHOOK_COLUMNS R"(
    FROM webhook AS w
    JOIN event_consumer AS c ON c.consumer = 'webhook/' || w.id
   WHERE w.id = $1)"};

constexpr Statement kListWebhooks{"webhook_list", R"(
  SELECT )" FENCEPOST_WEBHOOK_COLUMNS R"(
    FROM webhook AS w
    JOIN event_consumer AS c ON c.consumer = 'webhook/' || w.id
   WHERE $1::uuid IS NULL OR w.id > $1
   ORDER BY w.id
   LIMIT $2)"};

}  // namespace

awaitable<std::optional<Webhook>> find_webhook(pg::Pool& pool, const EventCatalog& catalog, Uuid id) {
  const auto rows = co_await pool.query(kFindWebhook, id);
  if (rows.empty()) co_return std::nullopt;
  co_return read_webhook(catalog, rows.one());
}

awaitable<std::vector<Webhook>> list_webhooks(pg::Pool& pool, const EventCatalog& catalog, std::optional<Uuid> after,
                                              std::size_t limit) {
  const auto rows = co_await pool.query(kListWebhooks, after, limit);
  std::vector<Webhook> out;
  for (const auto row : rows) out.push_back(read_webhook(catalog, row));
  co_return out;
}

namespace {

constexpr Statement kUpdateWebhook{"webhook_update", R"(
  UPDATE webhook
     SET url = $2, description = $3, filter = $4::jsonb, batch = $5, state = $6, disabled_reason = $7,
         updated_at = clock_timestamp()
   WHERE id = $1
     AND updated_at = $8)"};

// Only after a real change of the webhook above, which has a later `updated_at` then.
constexpr Statement kUpdateConsumer{"webhook_update_consumer", R"(
  UPDATE event_consumer AS c
     SET active = w.state = 'active',
         revision = c.revision + 1,
         failing_since = NULL,
         last_error = NULL,
         updated_at = clock_timestamp()
    FROM webhook AS w
   WHERE w.id = $1
     AND w.updated_at > $2
     AND c.consumer = 'webhook/' || w.id)"};

}  // namespace

awaitable<bool> update_webhook(pg::Pool& pool, Webhook webhook) {
  pg::Batch batch;
  batch.add(kUpdateWebhook, webhook.id, webhook.url, webhook.description, json::serialize(to_json(webhook.filter)),
            webhook.batch, kWebhookStates.name(webhook.state), webhook.disabled_reason, webhook.updated_at);
  batch.add(kUpdateConsumer, webhook.id, webhook.updated_at).add(sql::kAnnounceConsumers);
  const auto results = co_await pool.run(std::move(batch));
  co_return results[0].affected() == 1;
}

namespace {

constexpr Statement kRemoveWebhook{"webhook_remove", "DELETE FROM webhook WHERE id = $1"};

}  // namespace

awaitable<bool> remove_webhook(pg::Pool& pool, Uuid id) {
  pg::Batch batch;
  batch.add(sql::kRemoveConsumer, Webhook::consumer_of(id)).add(kRemoveWebhook, id).add(sql::kAnnounceConsumers);
  const auto results = co_await pool.run(std::move(batch));
  co_return results[1].affected() == 1;
}

namespace {

constexpr Statement kRotateKey{"webhook_rotate_key", R"(
  UPDATE webhook
     SET old_secret = secret,
         old_secret_until = clock_timestamp() + make_interval(secs => $3 / 1000.0),
         secret = $2,
         updated_at = clock_timestamp()
   WHERE id = $1
  RETURNING old_secret_until)"};

constexpr Statement kKeys{"webhook_keys", R"(
  SELECT secret,
         CASE WHEN old_secret_until > clock_timestamp() THEN old_secret END AS old_secret,
         (1000 * extract(epoch FROM old_secret_until - clock_timestamp()))::bigint AS old_secret_ms
    FROM webhook
   WHERE id = $1)"};

}  // namespace

awaitable<std::optional<TimePoint>> rotate_webhook_key(pg::Pool& pool, Uuid id, Secret key,
                                                       std::chrono::milliseconds overlap) {
  pg::Batch batch;
  batch.add(kRotateKey, id, bytes_of(key), overlap.count());
  batch.add(sql::kTouchConsumer, Webhook::consumer_of(id)).add(sql::kAnnounceConsumers);
  const auto results = co_await pool.run(std::move(batch));
  if (results[0].empty()) co_return std::nullopt;
  co_return results[0].one().get<TimePoint>("old_secret_until");
}

awaitable<WebhookKeys> webhook_keys(pg::Pool& pool, Uuid id) {
  const auto asked_at = std::chrono::steady_clock::now();
  const auto rows = co_await pool.query(kKeys, id);
  WebhookKeys keys;
  for (const auto row : rows) {
    keys.push_back({secret_of(row.get<pg::Bytes>("secret"))});
    if (row.is_null("old_secret")) continue;
    const std::chrono::milliseconds left(row.get<std::int64_t>("old_secret_ms"));
    keys.push_back({secret_of(row.get<pg::Bytes>("old_secret")), asked_at + left});
  }
  co_return keys;
}

}  // namespace fencepost::outbox
