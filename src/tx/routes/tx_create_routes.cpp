#include "http/batch_answer.hpp"
#include "http/idempotency_key.hpp"
#include "runtime/gather.hpp"
#include "tx/routes/handlers.hpp"

namespace fencepost::tx {
namespace {

using http::ItemAnswer;
using http::refused_item;
using http::Request;
using http::Response;

// Reads and checks one body without asking the database. `key` is the header Idempotency-Key. Throws the errors of
// read_create and one_key.
Result<CreateTx> prepare(const JsonReader& in, std::optional<std::string> key, const Request& request,
                         const RoutesParts& parts) {
  auto body = read_create(in, parts.manager.service().options().request_id_required && !key);
  body.request_id = http::one_key(std::move(key), std::move(body.request_id), "requestId");
  const auto chain_id = parts.manager.service().name_chain(body.chain_id);
  if (!chain_id) return fail(chain_id.error());
  // Check the permission first, so that a caller without it does not learn which signers exist.
  if (auto allowed = check_allowed(*request.principal(), body.signer); !allowed) return fail(allowed.error());
  return CreateTx{.tx_id = {},
                  .key = {*chain_id, std::move(body.signer)},
                  .request_id = std::move(body.request_id),
                  .payload = std::move(body.payload),
                  .preflight = body.preflight,
                  .forwarded = false,
                  .authorization = std::string(request.header("Authorization").value_or(""))};
}

Result<CreateTx> prepare_item(const JsonReader& item, const Request& request, const RoutesParts& parts) {
  auto wanted = prepare(item, std::nullopt, request, parts);
  if (wanted) wanted->tx_id = parts.ids.next();
  return wanted;
}

awaitable<ItemAnswer> create_item(TxService& service, CreateTx wanted) {
  auto created = co_await service.create(std::move(wanted));
  if (!created) co_return refused_item(std::move(created).error());
  co_return ItemAnswer{.status = created->existing ? 200U : 202U, .body = to_json(created->tx), .error = {}};
}

}  // namespace

awaitable<Response> create_tx(Request& request, RoutesParts parts) {
  check_query(request, {"wait", "timeout"});
  const auto wait = read_wait(request);
  const auto forwarded = read_forwarded(request);
  auto key = http::read_idempotency_key(request);
  const auto body = read_body(request);
  auto wanted = prepare(JsonReader(body), std::move(key), request, parts);
  if (!wanted) co_return Response::problem(wanted.error(), request);
  wanted->tx_id = forwarded ? *forwarded : parts.ids.next();
  wanted->forwarded = forwarded.has_value();
  auto created = co_await parts.manager.service().create(std::move(*wanted));
  if (!created) co_return Response::problem(created.error(), request);
  const auto tx = co_await wait_for(parts.manager.service(), std::move(created->tx), wait);
  co_return Response::json(created->existing ? 200 : 202, to_json(tx))
      .with("Location", "/api/v1/tx/" + tx.tx_id.to_string());
}

awaitable<Response> create_tx_batch(Request& request, RoutesParts parts) {
  check_query(request, {});
  http::refuse_idempotency_key(request);
  const auto body = read_body(request);
  auto tasks = http::batch_tasks<CreateTx>(
      JsonReader(body), [&](const JsonReader& item) { return prepare_item(item, request, parts); },
      [&service = parts.manager.service()](CreateTx wanted) { return create_item(service, std::move(wanted)); });
  auto answers = co_await gather(std::move(tasks));
  co_return http::batch_answer(std::move(answers), "tx", request);
}

}  // namespace fencepost::tx
