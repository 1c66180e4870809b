#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/json.hpp"
#include "evm/address.hpp"
#include "http/list_answer.hpp"
#include "notify/routes/handlers.hpp"

namespace fencepost::notify {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;

constexpr std::array<std::string_view, 2> kStandards{"compound", "openzeppelin"};
constexpr std::size_t kMaxAddressText = 64;

json::object subscription_json(const Subscription& subscription) {
  return {{"id", std::to_string(subscription.id)},
          {"emailId", std::to_string(subscription.user_email_id)},
          {"email", subscription.email},
          {"isVerified", subscription.is_verified},
          {"lastVerifiedAt", time_or_null(subscription.last_verified_at)},
          {"isDeliverable", subscription.is_deliverable},
          {"standard", subscription.contract.standard},
          {"chainId", subscription.contract.chain_id},
          {"contractAddress", subscription.contract.contract},
          {"notifyOn", json::array(subscription.notify_on.begin(), subscription.notify_on.end())},
          {"scope", kScopes.name(subscription.scope)},
          {"notifyFilters", subscription.filters.empty() ? json::value(nullptr) : to_json(subscription.filters)},
          {"isActive", subscription.is_active},
          {"createdAt", to_rfc3339(subscription.created_at)},
          {"updatedAt", to_rfc3339(subscription.updated_at)}};
}

std::vector<std::string> read_notify_on(const JsonReader& in) {
  std::vector<std::string> out;
  for (const auto& item : in.array(kNotifyStatuses.size())) {
    out.emplace_back(kNotifyStatuses[item.index_of(kNotifyStatuses)]);
    if (std::ranges::count(out, out.back()) > 1) item.reject("bad_request", "is named twice");
  }
  if (out.empty()) in.reject("bad_request", "expected at least one status");
  return out;
}

Scope read_scope(const JsonReader& in) {
  return static_cast<Scope>(in.index_of(kScopes.names()));
}

std::string read_contract(const JsonReader& in) {
  const auto address = evm::parse_address(in.string(kMaxAddressText));
  if (!address) in.reject(address.error().code, address.error().message);
  return *address;
}

NewSubscription read_new(const JsonReader& in) {
  in.reject_unknown({"emailId", "standard", "chainId", "contractAddress", "notifyOn", "scope", "notifyFilters"});
  NewSubscription out{.user_email_id = in.field("emailId").int64_text(),
                      .contract = {.standard = std::string(kStandards[in.field("standard").index_of(kStandards)]),
                                   .chain_id = in.field("chainId").int64(1),
                                   .contract = read_contract(in.field("contractAddress"))},
                      .notify_on = read_notify_on(in.field("notifyOn")),
                      .scope = Scope::kInitiator,
                      .filters = {},
                      .since = {}};
  if (const auto scope = in.field("scope"); scope.present()) out.scope = read_scope(scope);
  if (const auto filters = in.field("notifyFilters"); filters.present()) out.filters = read_notify_filters(filters);
  return out;
}

// `notifyFilters: null` removes them; an absent member leaves them.
SubscriptionChanges read_changes(const JsonReader& in) {
  in.reject_unknown({"notifyOn", "scope", "notifyFilters", "isActive"});
  SubscriptionChanges out;
  if (const auto notify_on = in.field("notifyOn"); notify_on.present()) out.notify_on = read_notify_on(notify_on);
  if (const auto scope = in.field("scope"); scope.present()) out.scope = read_scope(scope);
  if (const auto active = in.field("isActive"); active.present()) out.is_active = active.boolean();
  const auto filters = in.field("notifyFilters");
  if (filters.present()) out.filters = read_notify_filters(filters);
  if (filters.is_null()) out.filters = NotifyFilters{};
  return out;
}

}  // namespace

awaitable<Response> add_subscription_route(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto body = http::read_body(request);
  const auto added = co_await parts.mail.subscriptions().add(user_of(request), read_new(JsonReader(body)));
  if (!added) co_return Response::problem(added.error(), request);
  co_return private_answer(added->is_new ? 201 : 200, subscription_json(added->subscription));
}

awaitable<Response> get_subscriptions(Request& request, RoutesParts parts) {
  http::check_query(request, {"cursor", "limit"});
  const auto limit = http::read_limit(request);
  const auto after = http::read_id_cursor(request).value_or(0);
  const auto found = co_await list_subscriptions(parts.mail.pool(), user_of(request), after, limit + 1);
  co_return http::page_answer(found, limit, subscription_json, [](const Subscription& subscription) {
    return std::to_string(subscription.id);
  }).with("Cache-Control", "no-store");
}

awaitable<Response> get_subscription(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto found = co_await parts.mail.subscriptions().get(user_of(request), request.param_id("subscriptionId"));
  if (!found) co_return Response::problem(found.error(), request);
  co_return private_answer(200, subscription_json(*found));
}

awaitable<Response> change_subscription_route(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto body = http::read_body(request);
  auto changes = read_changes(JsonReader(body));
  const auto changed = co_await parts.mail.subscriptions().change(user_of(request), request.param_id("subscriptionId"),
                                                                  std::move(changes));
  if (!changed) co_return Response::problem(changed.error(), request);
  co_return private_answer(200, subscription_json(*changed));
}

awaitable<Response> remove_subscription_route(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto removed = co_await parts.mail.subscriptions().remove(user_of(request), request.param_id("subscriptionId"));
  if (!removed) co_return Response::problem(removed.error(), request);
  co_return Response::no_content();
}

}  // namespace fencepost::notify
