#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/json.hpp"
#include "evm/address.hpp"
#include "http/errors.hpp"
#include "http/list_answer.hpp"
#include "timelock/routes/handlers.hpp"

namespace fencepost::timelock {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;

constexpr std::size_t kMaxAddressText = 64;
constexpr std::size_t kMaxRemark = 500;
// A chain whose clock stands still for so long is halted, or its endpoints are.
constexpr auto kClockStalledAfter = std::chrono::minutes(10);

json::value time_json(const std::optional<TimePoint>& at) {
  return at ? json::value(to_rfc3339(*at)) : json::value(nullptr);
}

// Errors name endpoints, and quote what they said: that is for operators.
bool for_operators(const Request& request) {
  return !request.principal()->user;
}

json::object history_json(const Timelock& timelock, bool errors) {
  const auto total = std::max<std::int64_t>(timelock.history_last - timelock.from_block + 1, 0);
  const auto done = timelock.history_done() ? total : timelock.history_next - timelock.from_block;
  return {{"complete", timelock.history_done()},
          {"fromBlock", timelock.from_block},
          {"toBlock", timelock.history_last},
          {"nextBlock", timelock.history_next},
          {"progress", total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total)},
          {"completedAt", time_json(timelock.history_done_at)},
          {"error", errors ? optional_json(timelock.last_error) : json::value(nullptr)}};
}

json::value scan_json(const std::vector<ScanReport>& reports, std::int64_t chain_id, TimePoint now, bool errors) {
  for (const auto& report : reports) {
    if (report.chain_id != chain_id) continue;
    return json::object{{"block", report.point.number},
                        {"clock", to_rfc3339(TimePoint(std::chrono::seconds(report.point.timestamp)))},
                        {"clockStalled", now - report.moved_at > kClockStalledAfter},
                        {"failingSince", time_json(report.failing_since)},
                        {"error", errors ? optional_json(report.last_error) : json::value(nullptr)}};
  }
  return nullptr;
}

json::object to_json(const Timelock& timelock, const std::vector<ScanReport>& reports, TimePoint now, bool errors) {
  const auto& rules = timelock.rules;
  json::value grace(nullptr);
  if (rules.grace) grace = json::value(to_decimal(*rules.grace));
  return {{"chainId", timelock.key.chain_id},
          {"address", timelock.key.address},
          {"standard", kStandards.name(timelock.standard)},
          {"remark", timelock.remark},
          {"delay", to_decimal(rules.delay)},
          {"gracePeriod", std::move(grace)},
          {"admin", optional_json(rules.admin)},
          {"pendingAdmin", optional_json(rules.pending)},
          {"haltedAtBlock", optional_json(timelock.halted_block)},
          {"history", history_json(timelock, errors)},
          {"scan", scan_json(reports, timelock.key.chain_id, now, errors)},
          {"createdAt", to_rfc3339(timelock.created_at)}};
}

std::string address_of(const JsonReader& in) {
  auto address = evm::parse_address(in.string(kMaxAddressText));
  if (!address) in.reject(address.error().code, address.error().message);
  return std::move(*address);
}

awaitable<Response> answer(unsigned status, const Timelock& timelock, const Request& request, RoutesParts parts) {
  const auto reports = co_await scan_reports(parts.service.pool());
  co_return Response::json(status, to_json(timelock, reports, parts.clock.now(), for_operators(request)));
}

}  // namespace

ContractKey contract_of_path(const Request& request) {
  auto address = evm::parse_address(request.param("address"));
  if (!address) throw Exception(address.error());
  return {http::positive_param(request, "chainId"), std::move(*address)};
}

std::optional<std::int64_t> chain_of_query(const Request& request) {
  const auto chain_id = http::need(request.query_as<std::int64_t>("chainId"));
  if (chain_id && *chain_id <= 0) http::refuse_parameter("chainId", "a positive integer", std::to_string(*chain_id));
  return chain_id;
}

void check_contract(const Request& request, const std::string& address) {
  if (request.principal()->allows("contract", address)) return;
  throw Exception(http::forbidden("contract_not_allowed", "This key may not use this contract."));
}

void check_operator(const Request& request) {
  if (const auto allowed = http::Access::authenticated().check(*request.principal()); !allowed) {
    throw Exception(allowed.error());
  }
}

awaitable<Response> import_timelock(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto body = http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"chainId", "address", "standard", "remark", "fromBlock"});
  ImportRequest wanted;
  wanted.key = {in.field("chainId").int64(1), address_of(in.field("address"))};
  if (const auto standard = in.field("standard"); standard.present()) {
    wanted.standard = standard.one_of<Standard>(
        std::array{std::pair(kStandards.name(Standard::kCompound), Standard::kCompound),
                   std::pair(kStandards.name(Standard::kOpenZeppelin), Standard::kOpenZeppelin)});
  }
  if (const auto remark = in.field("remark"); remark.present()) wanted.remark = http::read_text(remark, kMaxRemark);
  if (const auto from = in.field("fromBlock"); from.present()) wanted.from_block = from.int64(0);
  check_contract(request, wanted.key.address);
  wanted.created_by = request.principal()->audit_name();
  const auto added = co_await parts.service.import(std::move(wanted));
  if (!added) co_return Response::problem(added.error(), request);
  auto response = co_await answer(201, *added, request, parts);
  response.with("Location", "/api/v1/timelocks/" + std::to_string(added->key.chain_id) + "/" + added->key.address);
  co_return response;
}

awaitable<Response> get_timelocks(Request& request, RoutesParts parts) {
  http::check_query(request, {"chainId", "cursor", "limit"});
  const auto limit = http::read_limit(request);
  const auto chain_id = chain_of_query(request);
  std::optional<ContractKey> after;
  if (const auto cursor = request.query("cursor")) {
    const auto text = std::string_view(*cursor);
    const auto colon = text.find(':');
    const auto chain =
        colon == text.npos ? std::nullopt : http::detail::parse_parameter<std::int64_t>(text.substr(0, colon));
    if (!chain) http::refuse_parameter("cursor", "a nextCursor of this list", *cursor);
    after = ContractKey{*chain, std::string(text.substr(colon + 1))};
  }
  std::optional<std::vector<std::string>> only;  // a key that is limited to contracts sees those
  if (const auto* allowed = request.principal()->restriction("contract")) only = *allowed;
  const auto rows = co_await list_timelocks(parts.service.pool(), chain_id, only, after, limit + 1);
  const auto reports = co_await scan_reports(parts.service.pool());
  const auto now = parts.clock.now();
  co_return http::page_answer(
      rows, limit, [&](const Timelock& timelock) { return to_json(timelock, reports, now, for_operators(request)); },
      [](const Timelock& timelock) { return std::to_string(timelock.key.chain_id) + ":" + timelock.key.address; });
}

awaitable<Response> get_timelock(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  auto key = contract_of_path(request);
  check_contract(request, key.address);
  const auto found = co_await parts.service.get(std::move(key));
  if (!found) co_return Response::problem(found.error(), request);
  co_return co_await answer(200, *found, request, parts);
}

awaitable<Response> change_timelock(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  auto key = contract_of_path(request);
  check_contract(request, key.address);
  const auto body = http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"remark", "fromBlock"});
  TimelockService::Changes changes;
  if (const auto remark = in.field("remark"); remark.present()) changes.remark = http::read_text(remark, kMaxRemark);
  if (const auto from = in.field("fromBlock"); from.present()) changes.from_block = from.int64(0);
  const auto changed = co_await parts.service.change(std::move(key), std::move(changes));
  if (!changed) co_return Response::problem(changed.error(), request);
  co_return co_await answer(200, *changed, request, parts);
}

awaitable<Response> remove_timelock_route(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  auto key = contract_of_path(request);
  check_contract(request, key.address);
  const auto removed = co_await parts.service.remove(std::move(key));
  if (!removed) co_return Response::problem(removed.error(), request);
  co_return Response::no_content();
}

}  // namespace fencepost::timelock
