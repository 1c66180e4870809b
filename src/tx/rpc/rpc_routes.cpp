#include "tx/rpc/rpc_routes.hpp"

#include "base/text.hpp"
#include "http/idempotency_key.hpp"
#include "http/problem.hpp"
#include "http/route_table.hpp"

namespace fencepost::tx {
namespace {

using http::Request;
using http::Response;
using http::Verb;

struct RpcRouteParts {
  RpcService& service;
};

Response rpc_response(std::string body) {
  return Response::text(200, std::move(body), "application/json");
}

std::string body_without_id(const Error& error, const Request& request) {
  std::string body;
  append_rpc_reply(body, "null", rpc_refusal(error, RpcFailed::kRead, request.id()));
  return body;
}

// The status and headers of a problem document with the body of a JSON-RPC error.
Response refuse_request(const Error& error, const Request& request) {
  auto response = http::make_problem(error, request.id());
  response.body = body_without_id(error, request);
  for (auto& [name, value] : response.headers) {
    if (name == "Content-Type") value = "application/json";
  }
  return response;
}

// The credential that the authenticator has accepted: the header if it is a bearer's, or else the key in the path.
std::string authorization_of(const Request& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const auto header = request.header("Authorization").value_or("");
  if (equal_ignoring_case(header.substr(0, kBearer.size()), kBearer)) return std::string(header);
  return std::string(kBearer) + std::string(request.path_secret().value_or(""));
}

awaitable<Response> post_rpc(Request& request, RpcRouteParts parts) {
  const auto chain_id = request.param_id("chainId");
  const auto served = parts.service.check_chain(chain_id);
  auto key = http::read_idempotency_key(request);
  auto calls = parse_rpc_request(request.body());
  if (!calls && !served) co_return refuse_request(served.error(), request);
  if (!calls) co_return rpc_response(body_without_id(calls.error(), request));
  RpcCaller caller{.principal = *request.principal(),
                   .authorization = authorization_of(request),
                   .idempotency_key = std::move(key),
                   .http_request_id = request.id()};
  std::string body;
  if (served) {
    body = co_await parts.service.answer(chain_id, std::move(*calls), std::move(caller));
  } else {
    auto known = co_await parts.service.answer_removed(chain_id, std::move(*calls), std::move(caller));
    if (!known) co_return refuse_request(served.error(), request);
    body = std::move(*known);
  }
  if (body.empty()) co_return Response::no_content();  // nothing but notifications
  co_return rpc_response(std::move(body));
}

// A WebSocket handshake, or a browser.
awaitable<Response> get_rpc(Request& request, RpcRouteParts) {
  const auto error =
      not_found("no_subscriptions", "WebSockets and subscriptions are not served: POST JSON-RPC requests");
  co_return Response::text(405, body_without_id(error, request), "application/json").with("Allow", "POST");
}

constexpr http::RouteRow<RpcRouteParts> kRpcRoutes[] = {
    {Verb::kPost, "/rpc/{chainId:id}", "authenticated", post_rpc},
    {Verb::kPost, "/rpc/{chainId:id}/{key:secret}", "authenticated", post_rpc},
    {Verb::kGet, "/rpc/{chainId:id}", "open", get_rpc},
    {Verb::kGet, "/rpc/{chainId:id}/{key:secret}", "open", get_rpc},
};

}  // namespace

void add_rpc_routes(http::Router& router, RpcService& service) {
  http::add_table<RpcRouteParts>(router, kRpcRoutes, {service}, refuse_request);
}

}  // namespace fencepost::tx
