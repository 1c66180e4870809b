#include "outbox/webhook/webhook.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/json.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;

constexpr std::string_view kAdminScope = "admin";

bool is_admin(const http::Principal& principal) {
  return std::ranges::find(principal.scopes, kAdminScope) != principal.scopes.end();
}

json::value time_json(const std::optional<TimePoint>& time) {
  return time ? json::value(to_rfc3339(*time)) : json::value(nullptr);
}

// Whether a caller who is restricted to `outer` may use every id of `inner`. nullptr: not restricted.
bool within(const std::vector<std::string>* inner, const std::vector<std::string>* outer) {
  if (outer == nullptr) return true;
  if (inner == nullptr) return false;
  return std::ranges::all_of(*inner, [&](const auto& id) { return std::ranges::find(*outer, id) != outer->end(); });
}

}  // namespace

json::object to_json(const Webhook& webhook) {
  auto out = to_json(webhook.filter);
  out["id"] = webhook.id.to_string();
  out["url"] = webhook.url;
  out["description"] = webhook.description;
  out["batch"] = webhook.batch;
  out["state"] = kWebhookStates.name(webhook.state);
  out["disabledReason"] = optional_json(webhook.disabled_reason);
  out["position"] = std::to_string(webhook.position);
  out["waiting"] = webhook.waiting;
  out["deadLetters"] = webhook.dead_letters;
  out["failingSince"] = time_json(webhook.failing_since);
  out["lastError"] = optional_json(webhook.last_error);
  out["oldSecretUntil"] = time_json(webhook.old_secret_until);
  out["createdAt"] = to_rfc3339(webhook.created_at);
  out["updatedAt"] = to_rfc3339(webhook.updated_at);
  return out;
}

http::Principal event_reader(const EventCatalog& catalog, const http::Principal& caller) {
  http::Principal reader{.id = caller.id, .label = caller.label, .scopes = {}, .restrictions = {}};
  if (is_admin(caller)) reader.scopes.emplace_back(kAdminScope);
  for (const auto& domain : catalog.domains()) {
    if (!is_admin(caller) && caller.has_scope(domain.read_scope)) reader.scopes.emplace_back(domain.read_scope);
    if (const auto* ids = caller.restriction(domain.kind)) reader.restrictions[std::string(domain.kind)] = *ids;
  }
  return reader;
}

bool covers(const EventCatalog& catalog, const http::Principal& caller, const http::Principal& reader) {
  if (is_admin(reader) && !is_admin(caller)) return false;
  return std::ranges::all_of(catalog.domains(), [&](const EventDomain& domain) {
    if (!reader.has_scope(domain.read_scope)) return true;
    return caller.has_scope(domain.read_scope) &&
           within(reader.restriction(domain.kind), caller.restriction(domain.kind));
  });
}

std::string webhook_message_id(const Uuid& webhook, std::int64_t first_seq, std::int64_t last_seq) {
  if (first_seq == last_seq) return fmt::format("{}_{}", webhook.to_string(), first_seq);
  return fmt::format("{}_{}-{}", webhook.to_string(), first_seq, last_seq);
}

std::string webhook_test_envelope(const Uuid& webhook, TimePoint at) {
  return json::serialize(json::object{{"specversion", "1.0"},
                                      {"id", fmt::format("test-{}", at.time_since_epoch().count())},
                                      {"source", "/fencepost"},
                                      {"type", kWebhookTestType},
                                      {"subject", Webhook::consumer_of(webhook)},
                                      {"time", to_rfc3339(at)},
                                      {"datacontenttype", "application/json"},
                                      {"data", json::object{{"webhookId", webhook.to_string()}}}});
}

}  // namespace fencepost::outbox
