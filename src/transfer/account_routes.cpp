#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "http/errors.hpp"
#include "http/idempotency_key.hpp"
#include "http/list_answer.hpp"
#include "transfer/handlers.hpp"
#include "transfer/statement_csv.hpp"
#include "transfer/transfer_request.hpp"

namespace fencepost::transfer {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;
using http::unprocessable;
using Parts = RoutesParts;

// The guild id of the path. Throws if the key may not act in this guild.
std::int64_t allowed_guild(const Request& request) {
  const auto guild_id = guild_of(request);
  if (auto allowed = check_allowed(*request.principal(), guild_id); !allowed) throw Exception(allowed.error());
  return guild_id;
}

Response account_answer(const std::optional<Account>& account, const Request& request) {
  if (!account)
    return Response::problem(not_found("no_such_account", "the member has no account in this guild"), request);
  return Response::json(200, to_json(*account));
}

// Requires: `entries` was read with limit + 1.
Response csv_answer(std::vector<Entry> entries, std::size_t limit, const Request& request) {
  const bool more = entries.size() > limit;
  if (more) entries.resize(limit);
  const auto name = fmt::format("statement-{}-{}.csv", request.param("guildId"), request.param("memberId"));
  auto response = Response::text(200, statement_csv(entries), "text/csv; charset=utf-8; header=present")
                      .with("Content-Disposition", fmt::format("attachment; filename=\"{}\"", name))
                      .with("Vary", "Accept");
  if (more) {
    response.with("Link", fmt::format("<{}?format=csv&limit={}&cursor={}>; rel=\"next\"", request.path(), limit,
                                      entries.back().ledger_id));
  }
  return response;
}

Response json_answer(const std::vector<Entry>& entries, std::size_t limit) {
  return http::page_answer(
             entries, limit, [](const Entry& entry) { return to_json(entry); },
             [](const Entry& entry) { return std::to_string(entry.ledger_id); })
      .with("Vary", "Accept");
}

Result<json::object> issued(const Issue& issue, const IssueResult& result) {
  const auto amount = std::to_string(issue.amount);
  switch (result.outcome) {
    case IssueOutcome::kCompleted:
    case IssueOutcome::kExisting:
      return json::object{{"transferId", result.transfer_id.value().to_string()},
                          {"kind", issue.kind},
                          {"guildId", std::to_string(issue.guild_id)},
                          {"memberId", std::to_string(issue.member_id)},
                          {"amount", amount},
                          {"ledgerId", std::to_string(result.ledger_id.value())},
                          {"balance", std::to_string(result.balance.value())}};
    case IssueOutcome::kConflict:
      return fail(conflict("idempotency_conflict",
                           "this idempotencyKey was already used for a different request; use a new key")
                      .with("transferId", result.transfer_id.value().to_string()));
    case IssueOutcome::kSupplyOverflow:
      return fail(unprocessable("supply_overflow", "the guild's supply would exceed 64 bits").with("amount", amount));
    case IssueOutcome::kInsufficientBalance:
      return fail(
          unprocessable("insufficient_balance", "the member's available balance is less than the amount to burn")
              .with("balance", std::to_string(result.available.value_or(0)))
              .with("required", amount));
    case IssueOutcome::kInvalid:
      break;
  }
  return fail(invalid("invalid_transfer", "the amount and the ids must be positive"));
}

awaitable<Response> issue(Request& request, Parts parts, std::string kind) {
  check_query(request, {});
  Issue issue{.kind = std::move(kind), .guild_id = allowed_guild(request), .member_id = member_of(request)};
  auto key = http::read_idempotency_key(request);
  const auto body = read_body(request);
  auto wanted = read_issue(JsonReader(body));
  issue.amount = wanted.amount;
  issue.reason = std::move(wanted.reason);
  issue.idempotency_key = http::one_key(std::move(key), std::move(wanted.idempotency_key), "idempotencyKey");
  issue.actor = request.principal()->audit_name();
  auto accounts = parts.service.accounts();
  const auto result = co_await accounts.issue(issue);
  const auto answer = issued(issue, result);
  if (!answer) co_return Response::problem(answer.error(), request);
  co_return Response::json(result.outcome == IssueOutcome::kCompleted ? 201 : 200, *answer);
}

}  // namespace

awaitable<Response> mint(Request& request, Parts parts) {
  return issue(request, std::move(parts), "mint");
}

awaitable<Response> burn(Request& request, Parts parts) {
  return issue(request, std::move(parts), "burn");
}

awaitable<Response> get_account(Request& request, Parts parts) {
  check_query(request, {});
  const auto guild_id = allowed_guild(request);
  const auto member_id = member_of(request, 0);
  auto accounts = parts.service.accounts();
  const auto account = co_await accounts.account(guild_id, member_id);
  co_return account_answer(account, request);
}

awaitable<Response> get_statement(Request& request, Parts parts) {
  const auto query = read_statement_query(request);
  const auto guild_id = allowed_guild(request);
  const auto member_id = member_of(request, 0);
  auto accounts = parts.service.accounts();
  auto entries = co_await accounts.statement(guild_id, member_id, query.before, query.limit + 1);
  if (entries.empty()) {
    const auto account = co_await accounts.account(guild_id, member_id);
    if (!account) co_return account_answer(account, request);
  }
  co_return query.csv ? csv_answer(std::move(entries), query.limit, request) : json_answer(entries, query.limit);
}

awaitable<Response> get_settings(Request& request, Parts parts) {
  check_query(request, {});
  const auto guild_id = allowed_guild(request);
  auto accounts = parts.service.accounts();
  const auto settings = co_await accounts.settings(guild_id);
  co_return Response::json(200, to_json(settings));
}

awaitable<Response> change_settings(Request& request, Parts parts) {
  check_query(request, {});
  const auto guild_id = allowed_guild(request);
  const auto body = read_body(request);
  auto wanted = read_settings_change(JsonReader(body));
  auto accounts = parts.service.accounts();
  const auto settings = co_await accounts.set_settings(guild_id, std::move(wanted.changes), std::move(wanted.reason),
                                                       request.principal()->audit_name());
  co_return Response::json(200, to_json(settings));
}

awaitable<Response> set_account_kind(Request& request, Parts parts) {
  check_query(request, {});
  const auto guild_id = allowed_guild(request);
  const auto member_id = member_of(request);
  const auto body = read_body(request);
  auto wanted = read_kind(JsonReader(body));
  auto accounts = parts.service.accounts();
  co_await accounts.set_account_kind(guild_id, member_id, std::move(wanted.kind), std::move(wanted.reason),
                                     request.principal()->audit_name());
  const auto account = co_await accounts.account(guild_id, member_id);
  co_return account_answer(account, request);
}

}  // namespace fencepost::transfer
