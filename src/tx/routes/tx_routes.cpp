#include <boost/json/object.hpp>

#include "base/json.hpp"
#include "http/list_answer.hpp"
#include "outbox/event_partitions.hpp"
#include "outbox/outbox_store.hpp"
#include "tx/routes/handlers.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;

// Steps or events in one answer. Only a transaction that is open for very long has more.
constexpr std::size_t kMaxSteps = 1000;

Error no_such_tx() {
  return not_found("no_such_tx", "there is no transaction with this txId or requestId that this API key may see");
}

json::object to_json(const AttemptView& attempt) {
  return {{"txHash", attempt.tx_hash},
          {"attempt", attempt.attempt},
          {"kind", kAttemptKinds.name(attempt.kind)},
          {"fees", optional_json(attempt.fees)},
          {"outcome", attempt.outcome ? json::value(kAttemptOutcomes.name(*attempt.outcome)) : json::value(nullptr)},
          {"message", optional_json(attempt.message)},
          {"createdAt", to_rfc3339(attempt.created_at)}};
}

json::object to_json(const outbox::HistoryStep& step) {
  return {{"at", to_rfc3339(step.at)},
          {"from", optional_json(step.from_state)},
          {"to", step.to_state},
          {"subState", optional_json(step.sub_state)},
          {"node", step.node},
          {"fencingToken", optional_json(step.fencing_token)},
          {"why", step.why}};
}

json::object to_json(const outbox::Event& event) {
  return {{"seq", event.seq},
          {"type", event.type},
          {"subject", event.subject},
          {"data", event.data},
          {"createdAt", to_rfc3339(event.at)}};
}

// The subject of a transaction in the log.
std::string subject_of(const ManagedTx& tx) {
  return "tx/" + tx.tx_id.to_string();
}

// A page of steps or events. The cursor is `seq`, their position in the log. `truncated` says that the first rows are
// gone: the log no longer has the month in which the transaction was created.
template <class T>
awaitable<Response> log_answer(RoutesParts parts, TimePoint created_at, std::vector<T> rows, std::size_t limit) {
  auto body = http::page_body(
      rows, limit, [](const T& row) { return to_json(row); }, [](const T& row) { return std::to_string(row.seq); });
  const auto since = co_await outbox::event_log_since(parts.database.pool());
  body["truncated"] = !since || created_at < *since;
  co_return Response::json(200, std::move(body));
}

awaitable<Response> answer_with_attempts(RoutesParts parts, ManagedTx tx) {
  const auto attempts = co_await list_attempts(parts.database.pool(), tx.tx_id);
  auto out = to_json(tx);
  json::array list;
  for (const auto& attempt : attempts) list.push_back(to_json(attempt));
  out["attempts"] = std::move(list);
  co_return Response::json(200, std::move(out));
}

}  // namespace

awaitable<Response> get_tx(Request& request, RoutesParts parts) {
  check_query(request, {"wait", "timeout"});
  const auto wait = read_wait(request);
  // Check the permission before waiting: the time of the answer must not reveal that the transaction exists.
  auto found = co_await find_visible(parts.manager.service(), *request.principal(), request.param_uuid("txId"));
  if (!found) co_return Response::problem(found.error(), request);
  auto tx = co_await wait_for(parts.manager.service(), std::move(*found), wait);
  co_return co_await answer_with_attempts(parts, std::move(tx));
}

awaitable<Response> get_tx_by_request(Request& request, RoutesParts parts) {
  auto query = read_request_query(request);
  const auto chain_id = parts.manager.service().name_chain(query.chain_id);
  if (!chain_id) co_return Response::problem(chain_id.error(), request);
  if (!may_use_signer(*request.principal(), query.signer)) co_return Response::problem(no_such_tx(), request);
  SignerKey key{*chain_id, std::move(query.signer)};
  const auto named = co_await parts.manager.service().find_by_request(std::move(key), std::move(query.request_id));
  if (!named) co_return Response::problem(no_such_tx(), request);
  auto found = co_await find_visible(parts.manager.service(), *request.principal(), named->tx_id);
  if (!found) co_return Response::problem(found.error(), request);
  co_return co_await answer_with_attempts(parts, std::move(*found));
}

awaitable<Response> list_tx(Request& request, RoutesParts parts) {
  auto filter = read_filter(request);
  filter.allowed_signers = allowed_signers(*request.principal());
  const auto limit = filter.limit++;  // page_answer needs one row more to know whether there is a next page
  const auto txs = co_await list_txs(parts.database.pool(), std::move(filter));
  co_return http::page_answer(
      txs, limit, [](const ManagedTx& tx) { return to_json(tx); },
      [](const ManagedTx& tx) { return tx.tx_id.to_string(); });
}

awaitable<Response> get_tx_history(Request& request, RoutesParts parts) {
  const auto page = read_log_page(request, kMaxSteps);
  const auto found = co_await find_visible(parts.manager.service(), *request.principal(), request.param_uuid("txId"));
  if (!found) co_return Response::problem(found.error(), request);
  auto steps = co_await outbox::history_of(parts.database.pool(), subject_of(*found), page.limit + 1, page.after);
  co_return co_await log_answer(parts, found->created_at, std::move(steps), page.limit);
}

awaitable<Response> get_tx_events(Request& request, RoutesParts parts) {
  const auto page = read_log_page(request, kMaxSteps);
  const auto found = co_await find_visible(parts.manager.service(), *request.principal(), request.param_uuid("txId"));
  if (!found) co_return Response::problem(found.error(), request);
  auto events = co_await outbox::events_of(parts.database.pool(), subject_of(*found), page.limit + 1, page.after);
  co_return co_await log_answer(parts, found->created_at, std::move(events), page.limit);
}

awaitable<ManagedTx> wait_for(TxService& service, ManagedTx tx, std::optional<WaitQuery> wait) {
  if (!wait || has_reached(tx, wait->what)) co_return tx;
  auto later = co_await service.wait(tx.tx_id, wait->what, wait->timeout);
  co_return later ? std::move(*later) : std::move(tx);
}

awaitable<Result<ManagedTx>> find_visible(TxService& service, http::Principal principal, Uuid tx_id) {
  auto tx = co_await service.find(tx_id);
  if (!tx || !may_use_signer(principal, tx->key.signer)) co_return fail(no_such_tx());
  co_return std::move(*tx);
}

}  // namespace fencepost::tx
