// A webhook: where events go, which events, and on whose behalf. Pure: no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/clock.hpp"
#include "base/name_table.hpp"
#include "base/secret.hpp"
#include "base/uuid.hpp"
#include "http/auth.hpp"
#include "outbox/feed/event_filter.hpp"

namespace fencepost::outbox {

inline constexpr std::string_view kWebhookKind = "webhook";
inline constexpr std::size_t kWebhookMaxBatch = 1000;
// The type of the event that a test-fire sends. It is in no log and has seq 0.
inline constexpr std::string_view kWebhookTestType = "WebhookTest";

enum class WebhookState { kActive, kPaused, kDisabled };
inline constexpr auto kWebhookStates = name_table<WebhookState>({
    {WebhookState::kActive, "active"},
    {WebhookState::kPaused, "paused"},
    {WebhookState::kDisabled, "disabled"},
});

struct Webhook {
  Uuid id;
  std::string url;
  std::string description;
  EventFilter filter;
  std::size_t batch = 0;   // events in one request, as a list; 0: one event, not in a list
  http::Principal reader;  // scopes and restrictions of the creator's key; id and label name the key
  WebhookState state = WebhookState::kActive;
  std::optional<std::string> disabled_reason;
  TimePoint created_at;
  TimePoint updated_at;
  std::optional<TimePoint> old_secret_until;
  // Progress.
  std::int64_t position = 0;
  std::int64_t waiting = 0;       // events that will be tried again
  std::int64_t dead_letters = 0;  // events that were given up
  std::optional<TimePoint> failing_since;
  std::optional<std::string> last_error;

  std::string consumer() const { return consumer_of(id); }
  static std::string consumer_of(const Uuid& id) { return "webhook/" + id.to_string(); }
};

// Without the secret, which is shown only once.
boost::json::object to_json(const Webhook& webhook);

// The part of a caller's rights that decides which events it sees.
http::Principal event_reader(const EventCatalog& catalog, const http::Principal& caller);

// Whether the caller may see every event that `reader` may see. Only then may it see and change the webhook.
bool covers(const EventCatalog& catalog, const http::Principal& caller, const http::Principal& reader);

// The header `webhook-id` of a request with these events: the same for every retry.
std::string webhook_message_id(const Uuid& webhook, std::int64_t first_seq, std::int64_t last_seq);

// The envelope of the event that a test-fire sends.
std::string webhook_test_envelope(const Uuid& webhook, TimePoint at);

}  // namespace fencepost::outbox
