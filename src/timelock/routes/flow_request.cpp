#include "timelock/routes/flow_request.hpp"

#include <algorithm>
#include <array>
#include <ranges>

#include <fmt/format.h>

#include "base/hex.hpp"
#include "base/text.hpp"
#include "base/uint256.hpp"
#include "evm/address.hpp"
#include "http/request_reader.hpp"
#include "timelock/routes/handlers.hpp"

namespace fencepost::timelock {
namespace {

using http::need;
using http::refuse_parameter;
using http::Request;

constexpr std::size_t kMaxSearch = 100;  // bytes
constexpr std::string_view kStatusList = "statuses separated by commas: waiting, ready, executed, cancelled, expired";
// 294276-12-31 23:59:59 UTC, the last second of PostgreSQL's timestamptz.
constexpr std::int64_t kLastSecond = 9'224'318'015'999;

std::vector<FlowStatus> read_statuses(const std::string& text) {
  std::vector<FlowStatus> statuses;
  for (const auto part : std::views::split(text, ',')) {
    const auto status = kFlow.find(std::string_view(part));
    if (!status) refuse_parameter("status", kStatusList, text);
    if (std::ranges::find(statuses, *status) == statuses.end()) statuses.push_back(*status);
  }
  if (statuses.empty()) refuse_parameter("status", kStatusList, text);
  return statuses;
}

std::optional<std::string> read_address(const Request& request, std::string_view name) {
  const auto text = need(request.query_as<std::string>(name));
  if (!text) return std::nullopt;
  auto address = evm::parse_address(*text);
  if (!address) throw Exception(std::move(address.error()).with("parameter", std::string(name)));
  return std::move(*address);
}

void read_search(FlowFilter& filter, const std::string& text) {
  constexpr std::string_view kForms = "an address, a hash, or 1 to 100 bytes of text that do not begin with 0x";
  if (text.empty() || text.size() > kMaxSearch) refuse_parameter("q", kForms, text.substr(0, kMaxSearch));
  const bool control = std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
  if (control) refuse_parameter("q", kForms, text);
  filter.text = text;
  filter.search = FlowSearch::kText;
  if (!text.starts_with("0x") && !text.starts_with("0X")) return;
  filter.text = lowercase(text);
  if (is_hash32(filter.text)) {
    filter.search = FlowSearch::kHash;
  } else if (is_address(filter.text)) {
    filter.search = FlowSearch::kAddress;
  } else {
    refuse_parameter("q", kForms, text);
  }
}

std::optional<FlowPlace> parse_cursor(std::string_view text, FlowSort sort) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, '.')) parts.emplace_back(std::string_view(part));
  if (parts.size() != 6 || parts[0] != (sort == FlowSort::kNewest ? "n" : "e")) return std::nullopt;
  const auto number = parse_decimal(parts[1]);
  const auto chain = http::detail::parse_parameter<std::int64_t>(parts[3]);
  const auto generation = http::detail::parse_parameter<std::int32_t>(parts[5]);
  if (!number || !is_hash32(parts[2]) || !chain || !is_address(parts[4]) || !generation) return std::nullopt;
  if (sort == FlowSort::kNewest && *number > Uint256(kLastSecond)) return std::nullopt;
  return FlowPlace{parts[1], parts[2], *chain, parts[4], *generation};
}

// A caller that is limited to contracts sees those, and asks for no other.
void limit_to_caller(const Request& request, FlowFilter& filter) {
  if (filter.contracts) {
    check_contract(request, filter.contracts->front());
  } else if (const auto* allowed = request.principal()->restriction("contract")) {
    filter.contracts = *allowed;
  }
}

FlowFilter read_common(const Request& request) {
  FlowFilter filter;
  filter.chain_id = chain_of_query(request);
  if (auto contract = read_address(request, "contract")) filter.contracts = std::vector{std::move(*contract)};
  filter.initiator = read_address(request, "initiator");
  if (const auto standard = need(request.query_as<std::string>("standard"))) {
    filter.standard = kStandards.find(*standard);
    if (!filter.standard) refuse_parameter("standard", "compound or openzeppelin", *standard);
  }
  if (const auto q = need(request.query_as<std::string>("q"))) read_search(filter, *q);
  limit_to_caller(request, filter);
  return filter;
}

}  // namespace

FlowFilter read_flow_filter(const Request& request) {
  http::check_query(
      request, {"status", "chainId", "contract", "initiator", "standard", "q", "sort", "removed", "cursor", "limit"});
  auto filter = read_common(request);
  if (const auto status = need(request.query_as<std::string>("status"))) filter.statuses = read_statuses(*status);
  filter.removed = need(request.query_or<bool>("removed", false));
  const auto sort = need(request.query_or<std::string>("sort", "newest"));
  if (sort != "newest" && sort != "eta") refuse_parameter("sort", "newest or eta", sort);
  filter.sort = sort == "eta" ? FlowSort::kEta : FlowSort::kNewest;
  if (const auto cursor = request.query("cursor")) {
    filter.after = parse_cursor(*cursor, filter.sort);
    if (!filter.after) refuse_parameter("cursor", "a nextCursor of this list with the same sort", *cursor);
  }
  filter.limit = http::read_limit(request);
  return filter;
}

FlowFilter read_calendar_filter(const Request& request) {
  http::check_query(request, {"chainId", "contract", "initiator", "standard", "q"});
  auto filter = read_common(request);
  filter.statuses = {FlowStatus::kWaiting, FlowStatus::kReady};
  filter.sort = FlowSort::kEta;
  return filter;
}

std::string cursor_text(const FlowPlace& place, FlowSort sort) {
  return fmt::format("{}.{}.{}.{}.{}.{}", sort == FlowSort::kNewest ? 'n' : 'e', place.value, place.flow_id,
                     place.chain_id, place.contract, place.generation);
}

FlowKey flow_of_path(const Request& request) {
  const auto standard = kStandards.find(request.param("standard"));
  if (!standard) refuse_parameter("standard", "compound or openzeppelin", request.param("standard"));
  auto contract = evm::parse_address(request.param("contract"));
  if (!contract) throw Exception(std::move(contract.error()).with("parameter", "contract"));
  auto flow_id = lowercase(request.param("flowId"));
  if (!request.param("flowId").starts_with("0x") || !is_hash32(flow_id))
    refuse_parameter("flowId", "0x and 64 hexadecimal digits", request.param("flowId"));
  return {*standard, http::positive_param(request, "chainId"), std::move(*contract), std::move(flow_id)};
}

}  // namespace fencepost::timelock
