// The table `webhook` (db/migrations/0013_webhook.sql). Functions throw as pg::Pool does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outbox/webhook/signature.hpp"
#include "outbox/webhook/webhook.hpp"
#include "pg/pool.hpp"

namespace fencepost::outbox {

// Adds the webhook and its consumer, which starts after `position`. False: there are `limit` webhooks already.
awaitable<bool> insert_webhook(pg::Pool& pool, Webhook webhook, Secret key, std::int64_t position, std::size_t limit);

// nullopt: there is none.
awaitable<std::optional<Webhook>> find_webhook(pg::Pool& pool, const EventCatalog& catalog, Uuid id);

// In the order of creation, after `after`.
awaitable<std::vector<Webhook>> list_webhooks(pg::Pool& pool, const EventCatalog& catalog, std::optional<Uuid> after,
                                              std::size_t limit);

// Stores url, description, filter, batch, state and reason, and notifies the nodes. False: the webhook is gone or was
// changed since it was read (`updated_at`).
awaitable<bool> update_webhook(pg::Pool& pool, Webhook webhook);

// False: there is none.
awaitable<bool> remove_webhook(pg::Pool& pool, Uuid id);

// Replaces the key; the old one stays valid for `overlap`. Returns until when; nullopt: there is no such webhook.
awaitable<std::optional<TimePoint>> rotate_webhook_key(pg::Pool& pool, Uuid id, Secret key,
                                                       std::chrono::milliseconds overlap);

// The keys to sign with, the newest first. Empty: there is no such webhook.
awaitable<WebhookKeys> webhook_keys(pg::Pool& pool, Uuid id);

}  // namespace fencepost::outbox
