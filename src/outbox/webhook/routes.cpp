#include "outbox/webhook/routes.hpp"

#include "base/id_text.hpp"
#include "base/json.hpp"
#include "http/list_answer.hpp"
#include "http/request_reader.hpp"
#include "http/route_table.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;
using http::Verb;
using Parts = WebhookRoutesParts;

constexpr std::size_t kMaxReplaySeqs = 1000;

std::string text_of(const Secret& secret) {
  return std::string(secret.reveal());
}

awaitable<Response> create(Request& request, Parts parts) {
  http::check_query(request, {});
  const auto created = co_await parts.service.create(*request.principal(), http::read_body(request));
  if (!created) co_return Response::problem(created.error(), request);
  auto body = to_json(created->webhook);
  body["secret"] = text_of(created->secret);
  co_return Response::json(201, std::move(body))
      .with("Location", "/api/v1/webhooks/" + created->webhook.id.to_string())
      .with("Cache-Control", "no-store");
}

awaitable<Response> list(Request& request, Parts parts) {
  http::check_query(request, {"cursor", "limit"});
  const auto limit = http::read_limit(request);
  std::optional<Uuid> after;
  if (const auto cursor = request.query("cursor")) {
    const auto id = Uuid::parse(*cursor);
    if (!id) http::refuse_parameter("cursor", "a nextCursor of this list", *cursor);
    after = *id;
  }
  const auto webhooks = co_await parts.service.list(*request.principal(), after, limit);
  co_return http::page_answer(
      webhooks, limit, [](const Webhook& webhook) { return to_json(webhook); },
      [](const Webhook& webhook) { return webhook.id.to_string(); });
}

awaitable<Response> get(Request& request, Parts parts) {
  http::check_query(request, {});
  const auto webhook = co_await parts.service.get(*request.principal(), request.param_uuid("webhookId"));
  if (!webhook) co_return Response::problem(webhook.error(), request);
  co_return Response::json(200, to_json(*webhook));
}

awaitable<Response> change(Request& request, Parts parts) {
  http::check_query(request, {});
  const auto webhook =
      co_await parts.service.change(*request.principal(), request.param_uuid("webhookId"), http::read_body(request));
  if (!webhook) co_return Response::problem(webhook.error(), request);
  co_return Response::json(200, to_json(*webhook));
}

awaitable<Response> remove(Request& request, Parts parts) {
  http::check_query(request, {});
  const auto removed = co_await parts.service.remove(*request.principal(), request.param_uuid("webhookId"));
  if (!removed) co_return Response::problem(removed.error(), request);
  co_return Response::no_content();
}

awaitable<Response> test(Request& request, Parts parts) {
  http::check_query(request, {});
  const auto outcome = co_await parts.service.test(*request.principal(), request.param_uuid("webhookId"));
  if (!outcome) co_return Response::problem(outcome.error(), request);
  co_return Response::json(
      200, json::object{{"delivered", outcome->delivered()},
                        {"status", outcome->status ? json::value(*outcome->status) : json::value(nullptr)},
                        {"latencyMs", outcome->latency.count()},
                        {"error", outcome->error.empty() ? json::value(nullptr) : json::value(outcome->error)}});
}

awaitable<Response> rotate_secret(Request& request, Parts parts) {
  http::check_query(request, {});
  const auto rotated = co_await parts.service.rotate_secret(*request.principal(), request.param_uuid("webhookId"));
  if (!rotated) co_return Response::problem(rotated.error(), request);
  co_return Response::json(
      200, json::object{{"secret", text_of(rotated->secret)}, {"oldSecretUntil", to_rfc3339(rotated->old_valid_until)}})
      .with("Cache-Control", "no-store");
}

awaitable<Response> deliveries(Request& request, Parts parts) {
  http::check_query(request, {"succeeded", "limit"});
  const auto limit = http::read_limit(request);
  const auto succeeded = http::need(request.query_as<bool>("succeeded"));
  const auto id = request.param_uuid("webhookId");
  const auto webhook = co_await parts.service.get(*request.principal(), id);
  if (!webhook) co_return Response::problem(webhook.error(), request);
  auto logged = co_await list_deliveries(parts.service.pool(), id, succeeded, std::nullopt, limit);
  json::array items;
  for (auto& delivery : logged) items.push_back(std::move(delivery.json));
  co_return http::list_answer(std::move(items));
}

awaitable<Response> dead_letters(Request& request, Parts parts) {
  http::check_query(request, {"cursor", "limit"});
  const auto limit = http::read_limit(request);
  std::int64_t after = 0;
  if (const auto cursor = request.query("cursor")) {
    after = parse_id(*cursor).value_or(0);
    if (after == 0) http::refuse_parameter("cursor", "a nextCursor of this list", *cursor);
  }
  const auto id = request.param_uuid("webhookId");
  const auto webhook = co_await parts.service.get(*request.principal(), id);
  if (!webhook) co_return Response::problem(webhook.error(), request);
  const auto letters = co_await list_dead_letters(parts.service.pool(), id, after, limit + 1);
  co_return http::page_answer(
      letters, limit, [](const DeadLetter& letter) { return to_json(letter); },
      [](const DeadLetter& letter) { return std::to_string(letter.seq); });
}

awaitable<Response> replay(Request& request, Parts parts) {
  http::check_query(request, {});
  const auto body = request.body().empty() ? json::value(json::object()) : http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"seqs"});
  std::vector<std::int64_t> seqs;
  if (in.field("seqs").present()) {
    for (const auto& seq : in.field("seqs").array(kMaxReplaySeqs)) seqs.push_back(seq.int64_text());
    if (seqs.empty()) in.field("seqs").reject("bad_request", "expected at least one; leave it out for all");
  }
  const auto replayed =
      co_await parts.service.replay(*request.principal(), request.param_uuid("webhookId"), std::move(seqs));
  if (!replayed) co_return Response::problem(replayed.error(), request);
  co_return Response::json(200, json::object{{"replayed", *replayed}});
}

constexpr http::RouteRow<Parts> kWebhookRoutes[] = {
    {Verb::kPost, "/api/v1/webhooks", "webhooks:write", create},
    {Verb::kGet, "/api/v1/webhooks", "webhooks:read", list},
    {Verb::kGet, "/api/v1/webhooks/{webhookId:uuid}", "webhooks:read", get},
    {Verb::kPatch, "/api/v1/webhooks/{webhookId:uuid}", "webhooks:write", change},
    {Verb::kDelete, "/api/v1/webhooks/{webhookId:uuid}", "webhooks:write", remove},
    {Verb::kPost, "/api/v1/webhooks/{webhookId:uuid}/test", "webhooks:write", test},
    {Verb::kPost, "/api/v1/webhooks/{webhookId:uuid}/rotate-secret", "webhooks:write", rotate_secret},
    {Verb::kGet, "/api/v1/webhooks/{webhookId:uuid}/deliveries", "webhooks:read", deliveries},
    {Verb::kGet, "/api/v1/webhooks/{webhookId:uuid}/dead-letters", "webhooks:read", dead_letters},
    {Verb::kPost, "/api/v1/webhooks/{webhookId:uuid}/dead-letters/replay", "webhooks:write", replay},
};

}  // namespace

void add_webhook_routes(http::Router& router, const WebhookRoutesParts& parts) {
  http::add_table<WebhookRoutesParts>(router, kWebhookRoutes, parts);
}

}  // namespace fencepost::outbox
