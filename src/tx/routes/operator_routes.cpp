#include <limits>

#include <boost/json/object.hpp>

#include "tx/routes/handlers.hpp"
#include "tx/service/operator_service.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;
using Parts = RoutesParts;

json::value read_act(const Request& request, std::initializer_list<std::string_view> members) {
  check_query(request, {});
  auto body = read_body(request);
  JsonReader(body).reject_unknown(members);
  return body;
}

Operator operator_of(const Request& request, const JsonReader& in) {
  return {.actor = request.principal()->audit_name(), .reason = read_reason(in)};
}

Response answer(unsigned status, const Result<ManagedTx>& tx, const Request& request) {
  if (!tx) return Response::problem(tx.error(), request);
  return Response::json(status, to_json(*tx));
}

// The transaction of the path, if the API key may use its signer.
awaitable<Result<Uuid>> named_tx(Request& request, Parts parts) {
  const auto tx_id = request.param_uuid("txId");
  const auto tx = co_await find_visible(parts.manager.service(), *request.principal(), tx_id);
  if (!tx) co_return fail(tx.error());
  co_return tx_id;
}

Result<SignerKey> named_signer(const Request& request, const JsonReader& in, const Parts& parts) {
  auto signer = read_path_signer(request);
  if (auto allowed = check_allowed(*request.principal(), signer); !allowed) return fail(allowed.error());
  const auto chain_id = parts.manager.service().resolve_chain(read_chain_id(in.field("chainId")));
  if (!chain_id) return fail(chain_id.error());
  return SignerKey{*chain_id, std::move(signer)};
}

// Handles an operator action that needs only a transaction and a reason.
template <awaitable<Result<ManagedTx>> (OperatorService::*act)(Uuid, Operator)>
awaitable<Response> act_on_tx(Request& request, Parts parts) {
  const auto body = read_act(request, {"reason"});
  auto who = operator_of(request, JsonReader(body));
  const auto tx_id = co_await named_tx(request, parts);
  if (!tx_id) co_return Response::problem(tx_id.error(), request);
  const auto tx = co_await (parts.manager.operators().*act)(*tx_id, std::move(who));
  co_return answer(200, tx, request);
}

}  // namespace

awaitable<Response> rebroadcast_tx(Request& request, Parts parts) {
  return act_on_tx<&OperatorService::rebroadcast>(request, parts);
}

awaitable<Response> cancel_tx(Request& request, Parts parts) {
  return act_on_tx<&OperatorService::cancel>(request, parts);
}

awaitable<Response> resend_tx(Request& request, Parts parts) {
  return act_on_tx<&OperatorService::resend>(request, parts);
}

awaitable<Response> give_up_tx(Request& request, Parts parts) {
  return act_on_tx<&OperatorService::give_up>(request, parts);
}

awaitable<Response> record_tx_hash(Request& request, Parts parts) {
  const auto body = read_act(request, {"txHash", "reason"});
  const JsonReader in(body);
  auto tx_hash = read_tx_hash(in.field("txHash"));
  auto who = operator_of(request, in);
  const auto tx_id = co_await named_tx(request, parts);
  if (!tx_id) co_return Response::problem(tx_id.error(), request);
  const auto tx = co_await parts.manager.operators().record_hash(*tx_id, std::move(tx_hash), std::move(who));
  co_return answer(200, tx, request);
}

awaitable<Response> fill_nonce(Request& request, Parts parts) {
  const auto body = read_act(request, {"chainId", "nonce", "reason"});
  const JsonReader in(body);
  const auto nonce = in.field("nonce").int64(0, std::numeric_limits<std::int64_t>::max() - 1);
  auto who = operator_of(request, in);
  auto key = named_signer(request, in, parts);
  if (!key) co_return Response::problem(key.error(), request);
  const auto tx = co_await parts.manager.operators().fill_nonce(std::move(*key), nonce, std::move(who));
  co_return answer(202, tx, request);
}

awaitable<Response> accept_reconcile(Request& request, Parts parts) {
  const auto body = read_act(request, {"chainId", "reason"});
  const JsonReader in(body);
  auto who = operator_of(request, in);
  const auto key = named_signer(request, in, parts);
  if (!key) co_return Response::problem(key.error(), request);
  const auto next_nonce = co_await parts.manager.operators().accept_reconcile(*key, std::move(who));
  if (!next_nonce) co_return Response::problem(next_nonce.error(), request);
  co_return Response::json(200, {{"chainId", key->chain_id}, {"signer", key->signer}, {"nextNonce", *next_nonce}});
}

awaitable<Response> reset_cursor(Request& request, Parts parts) {
  const auto body = read_act(request, {"chainId", "nextNonce", "reason"});
  const JsonReader in(body);
  const auto next_nonce = in.field("nextNonce").int64(0, std::numeric_limits<std::int64_t>::max() - 1);
  auto who = operator_of(request, in);
  const auto key = named_signer(request, in, parts);
  if (!key) co_return Response::problem(key.error(), request);
  const auto reset = co_await parts.manager.operators().reset_cursor(*key, next_nonce, std::move(who));
  if (!reset) co_return Response::problem(reset.error(), request);
  co_return Response::json(200, {{"chainId", key->chain_id},
                                 {"signer", key->signer},
                                 {"nextNonce", reset->next_nonce},
                                 {"givenUp", reset->given_up},
                                 {"released", reset->released}});
}

}  // namespace fencepost::tx
