// What callers do with webhooks. A caller sees and changes a webhook only if it may itself see every event that the
// webhook gets; any other webhook does not exist for it (404 `no_such_webhook`).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/random.hpp"
#include "base/uuid.hpp"
#include "outbox/feed/event_feed.hpp"
#include "outbox/webhook/backlog_store.hpp"
#include "outbox/webhook/options.hpp"
#include "outbox/webhook/webhook.hpp"
#include "outbox/webhook/webhook_sender.hpp"
#include "pg/database.hpp"

namespace fencepost::outbox {

struct CreatedWebhook {
  Webhook webhook;
  Secret secret;  // "whsec_…", shown once
};

struct RotatedSecret {
  Secret secret;
  TimePoint old_valid_until;
};

// Any loop. Methods throw Exception kInvalid for a bad body, and as pg::Pool does.
class WebhookService {
 public:
  struct Parts {
    pg::Database& database;
    EventFeed& feed;
    const Clock& clock;
    Random& random;  // SystemRandom: keys are made of it
    UuidGenerator& ids;
    const WebhookOptions& options;
  };
  explicit WebhookService(Parts parts) : parts_(parts) {}

  // Errors: those of check_webhook_url and EventVisibility::check, `unknown_event_id`, `too_many_webhooks`. Sends
  // nothing to the receiver.
  awaitable<Result<CreatedWebhook>> create(http::Principal caller, boost::json::value body);
  awaitable<Result<Webhook>> get(http::Principal caller, Uuid id);
  // The webhooks that the caller may see, in the order of creation, at most `limit` + 1, after `after`.
  awaitable<std::vector<Webhook>> list(http::Principal caller, std::optional<Uuid> after, std::size_t limit);
  // Errors: as create and get, and `webhook_changed` when another request changed it at the same moment.
  awaitable<Result<Webhook>> change(http::Principal caller, Uuid id, boost::json::value body);
  awaitable<Result<void>> remove(http::Principal caller, Uuid id);
  awaitable<Result<RotatedSecret>> rotate_secret(http::Principal caller, Uuid id);
  // Sends one event of the type WebhookTest now, whatever the filter and the state are. No retry.
  awaitable<Result<Outcome>> test(http::Principal caller, Uuid id);
  // How many dead letters wait again. Empty `seqs`: all.
  awaitable<Result<std::int64_t>> replay(http::Principal caller, Uuid id, std::vector<std::int64_t> seqs);

  pg::Pool& pool() { return parts_.database.pool(); }

 private:
  awaitable<Result<void>> check_target(std::string url);

  Parts parts_;
};

}  // namespace fencepost::outbox
