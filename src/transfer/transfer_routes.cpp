#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "http/batch_answer.hpp"
#include "http/errors.hpp"
#include "http/idempotency_key.hpp"
#include "http/list_answer.hpp"
#include "runtime/gather.hpp"
#include "transfer/audit.hpp"
#include "transfer/handlers.hpp"
#include "transfer/transfer_request.hpp"

namespace fencepost::transfer {
namespace {

namespace json = boost::json;
using http::ItemAnswer;
using http::refused_item;
using http::Request;
using http::Response;
using Parts = RoutesParts;

Error guild_not_allowed(std::string message) {
  return http::forbidden("guild_not_allowed", std::move(message));
}

std::string_view mode_name(Mode mode) {
  return mode == Mode::kSync ? "sync" : "pool";
}

json::object to_json(const TransferResult& result, Mode mode) {
  return {{"transferId", result.transfer_id.to_string()},
          {"status", kPendingTransfer.name(TransferStatus::kCompleted)},
          {"mode", mode_name(mode)},
          {"ledgerId", std::to_string(result.ledger_id)},
          {"initiatorBalance", std::to_string(result.initiator_balance)},
          {"targetBalance", std::to_string(result.target_balance)},
          {"createdAt", to_rfc3339(result.created_at)}};
}

json::object to_json(const Accepted& accepted, Mode mode) {
  return {{"transferId", accepted.transfer_id.to_string()},
          {"status", kPendingTransfer.name(accepted.status)},
          {"mode", mode_name(mode)}};
}

// Reads and checks one body, without the database. `key` is the header Idempotency-Key. Throws as read_transfer and
// one_key do.
Result<TransferBody> prepare(const JsonReader& in, std::optional<std::string> key, const Request& request,
                             const Parts& parts) {
  auto body = read_transfer(in, parts.service.default_mode());
  auto& own_key = body.transfer.idempotency_key;
  own_key = http::one_key(std::move(key), std::move(own_key), "idempotencyKey");
  if (auto allowed = check_allowed(*request.principal(), body.transfer.guild_id); !allowed) {
    return fail(allowed.error());
  }
  body.transfer.transfer_id = parts.ids.next();
  return body;
}

// The actual mode of the transfer. It differs from `asked` if the key was used before in the other mode.
awaitable<Mode> mode_of(TransferService& service, Uuid transfer_id, bool existing, Mode asked) {
  if (!existing) co_return asked;
  const auto transfer = co_await service.get_transfer_status(transfer_id);
  co_return transfer ? transfer->mode : asked;
}

awaitable<ItemAnswer> carry_out(TransferService& service, TransferBody body) {
  const auto asked = body.mode;
  const auto outcome = co_await service.transfer_currency(std::move(body.transfer), asked);
  if (!outcome) co_return refused_item(outcome.error());
  if (const auto* done = std::get_if<TransferResult>(&*outcome)) {
    const auto mode = co_await mode_of(service, done->transfer_id, done->existing, asked);
    co_return ItemAnswer{.status = done->existing ? 200U : 201U, .body = to_json(*done, mode), .error = {}};
  }
  const auto& accepted = std::get<Accepted>(*outcome);
  const auto mode = co_await mode_of(service, accepted.transfer_id, accepted.existing, asked);
  co_return ItemAnswer{.status = accepted.existing ? 200U : 202U, .body = to_json(accepted, mode), .error = {}};
}

// The transfer, if the caller may see it.
awaitable<Result<Transfer>> find_visible(TransferService& service, const http::Principal& principal, Uuid transfer_id) {
  auto transfer = co_await service.get_transfer_status(transfer_id);
  if (!transfer || !check_allowed(principal, transfer->guild_id)) co_return fail(no_such_transfer());
  co_return std::move(*transfer);
}

}  // namespace

awaitable<Response> create_transfer(Request& request, Parts parts) {
  check_query(request, {});
  auto key = http::read_idempotency_key(request);
  const auto body = read_body(request);
  auto wanted = prepare(JsonReader(body), std::move(key), request, parts);
  if (!wanted) co_return Response::problem(wanted.error(), request);
  const auto answer = co_await carry_out(parts.service, std::move(*wanted));
  if (answer.error) co_return Response::problem(*answer.error, request);
  const std::string location = "/api/v1/transfers/" + std::string(answer.body.at("transferId").as_string());
  co_return Response::json(answer.status, answer.body).with("Location", location);
}

awaitable<Response> create_transfer_batch(Request& request, Parts parts) {
  check_query(request, {});
  http::refuse_idempotency_key(request);
  const auto body = read_body(request);
  auto tasks = http::batch_tasks<TransferBody>(
      JsonReader(body), [&](const JsonReader& item) { return prepare(item, std::nullopt, request, parts); },
      [&service = parts.service](TransferBody wanted) { return carry_out(service, std::move(wanted)); });
  auto answers = co_await gather(std::move(tasks));
  co_return http::batch_answer(std::move(answers), "transfer", request);
}

awaitable<Response> get_transfer(Request& request, Parts parts) {
  check_query(request, {});
  const auto found = co_await find_visible(parts.service, *request.principal(), request.param_uuid("transferId"));
  if (!found) co_return Response::problem(found.error(), request);
  co_return Response::json(200, to_json(*found));
}

awaitable<Response> list_transfers(Request& request, Parts parts) {
  const auto query = read_transfer_query(request);
  if (auto allowed = check_allowed(*request.principal(), query.guild_id); !allowed) {
    co_return Response::problem(allowed.error(), request);
  }
  auto gateway = parts.service.gateway();
  const auto transfers = co_await gateway.list(query.guild_id, query.status, query.before, query.limit + 1);
  co_return http::page_answer(
      transfers, query.limit, [](const Transfer& transfer) { return to_json(transfer); },
      [](const Transfer& transfer) { return std::to_string(transfer.seq); });
}

awaitable<Response> cancel_transfer(Request& request, Parts parts) {
  check_query(request, {});
  if (!request.body().empty()) {
    const auto body = read_body(request);
    JsonReader(body).reject_unknown({});
  }
  const auto transfer_id = request.param_uuid("transferId");
  const auto found = co_await find_visible(parts.service, *request.principal(), transfer_id);
  if (!found) co_return Response::problem(found.error(), request);
  const auto cancelled = co_await parts.service.cancel(transfer_id);
  if (!cancelled) co_return Response::problem(cancelled.error(), request);
  co_return Response::json(200, to_json(*cancelled));
}

awaitable<Response> fail_transfer(Request& request, Parts parts) {
  check_query(request, {});
  const auto body = read_body(request);
  auto reason = read_fail(JsonReader(body));
  const auto transfer_id = request.param_uuid("transferId");
  const auto found = co_await find_visible(parts.service, *request.principal(), transfer_id);
  if (!found) co_return Response::problem(found.error(), request);
  const auto failed =
      co_await parts.service.fail_transfer(transfer_id, std::move(reason), request.principal()->audit_name());
  if (!failed) co_return Response::problem(failed.error(), request);
  co_return Response::json(200, to_json(*failed));
}

awaitable<Response> get_audit(Request& request, Parts parts) {
  check_query(request, {});
  // The audit covers all guilds, so a key that is restricted to some must not see its findings.
  if (request.principal()->restriction(kGuildKind) != nullptr) {
    co_return Response::problem(
        guild_not_allowed(
            "the audit covers all guilds, and this key is restricted to some: use a key without restriction to guilds"),
        request);
  }
  if (parts.auditing->exchange(true)) {
    co_return Response::problem(
        conflict("audit_running", "an audit is already running on this node: retry when it has ended")
            .after(std::chrono::seconds(1)),
        request);
  }
  using Running = std::atomic<bool>;
  const std::unique_ptr<Running, decltype([](Running* running) { *running = false; })> until_done(parts.auditing.get());
  const auto findings = co_await audit(parts.database.pool());
  bool ok = true;
  json::array list;
  for (const auto& finding : findings) {
    ok = ok && finding.wrong == 0;
    json::value example(nullptr);
    if (finding.example) example = json::value(*finding.example);
    list.push_back(json::object{{"check", finding.check}, {"wrong", finding.wrong}, {"example", std::move(example)}});
  }
  co_return Response::json(200, {{"ok", ok}, {"findings", std::move(list)}});
}

Result<void> check_allowed(const http::Principal& principal, std::int64_t guild_id) {
  const auto guild = std::to_string(guild_id);
  if (principal.allows(kGuildKind, guild)) return {};
  return fail(guild_not_allowed("this key may not act in this guild").with("guildId", guild));
}

}  // namespace fencepost::transfer
