#include <ranges>

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/hex.hpp"
#include "base/json.hpp"
#include "http/list_answer.hpp"
#include "timelock/routes/flow_json.hpp"
#include "timelock/routes/handlers.hpp"
#include "timelock/store/contract_query_store.hpp"

namespace fencepost::timelock {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;

json::object stats_json(const ContractStats& stats) {
  json::object flows;
  for (const auto name : kFlow.names()) {
    const auto found = stats.flows.find(kFlow.find(name).value());
    flows[name] = found == stats.flows.end() ? 0 : found->second;
  }
  json::value next(nullptr);
  if (stats.next) {
    next = json::object{{"flowId", stats.next->flow_id},
                        {"generation", stats.next->generation},
                        {"dueAt", time_json(stats.next->due_at)}};
  }
  json::value last(nullptr);
  if (stats.last) {
    last = json::object{{"event", stats.last->type},
                        {"txHash", stats.last->tx_hash},
                        {"blockNumber", stats.last->block_number},
                        {"blockTime", time_json(stats.last->at)}};
  }
  return {{"flows", std::move(flows)},
          {"atLeast", stats.at_least},
          {"queuedLast30Days", stats.queued_lately},
          {"medianSecondsToExecution", optional_json(stats.median_delay)},
          {"nextDue", std::move(next)},
          {"lastEvent", std::move(last)}};
}

json::object guard_json(const GuardEvent& event) {
  return {{"event", event.type},           {"arguments", event.arguments},
          {"txHash", event.tx_hash},       {"blockNumber", event.block_number},
          {"blockHash", event.block_hash}, {"blockTime", time_json(event.at)},
          {"logIndex", event.log_index},   {"from", event.from},
          {"to", optional_json(event.to)}, {"orphaned", event.orphaned}};
}

std::optional<GuardPlace> parse_place(std::string_view text) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, '.')) parts.emplace_back(std::string_view(part));
  if (parts.size() != 3 || !is_hash32(parts[2])) return std::nullopt;
  const auto block = http::detail::parse_parameter<std::int64_t>(parts[0]);
  const auto index = http::detail::parse_parameter<std::int64_t>(parts[1]);
  if (!block || !index) return std::nullopt;
  return GuardPlace{*block, *index, parts[2]};
}

}  // namespace

awaitable<Response> get_timelock_stats(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto key = contract_of_path(request);
  check_contract(request, key.address);
  const auto found = co_await parts.service.get(key);
  if (!found) co_return Response::problem(found.error(), request);
  co_return Response::json(200, stats_json(co_await contract_stats(parts.service.pool(), key)));
}

awaitable<Response> get_timelock_events(Request& request, RoutesParts parts) {
  http::check_query(request, {"cursor", "limit"});
  const auto limit = http::read_limit(request);
  std::optional<GuardPlace> after;
  if (const auto cursor = request.query("cursor")) {
    after = parse_place(*cursor);
    if (!after) http::refuse_parameter("cursor", "a nextCursor of this list", *cursor);
  }
  const auto key = contract_of_path(request);
  check_contract(request, key.address);
  const auto found = co_await parts.service.get(key);
  if (!found) co_return Response::problem(found.error(), request);
  const auto events = co_await list_guard_events(parts.service.pool(), key, after, limit + 1);
  co_return http::page_answer(events, limit, guard_json, [](const GuardEvent& event) {
    return fmt::format("{}.{}.{}", event.block_number, event.log_index, event.block_hash);
  });
}

}  // namespace fencepost::timelock
