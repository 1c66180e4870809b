#include "node/timelock_flows.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/hex.hpp"
#include "timelock/service/flow_calls.hpp"
#include "timelock/store/flow_query_store.hpp"

namespace fencepost {
namespace {

constexpr std::size_t kSelectorText = 10;  // 0x and eight digits

std::optional<TimePoint> time_of(std::optional<std::int64_t> seconds) {
  // Later ones do not fit into a date of four digits, and no mail needs them.
  constexpr std::int64_t kEndOfYear9999 = 253'402'300'799;
  if (!seconds || *seconds > kEndOfYear9999) return std::nullopt;
  return TimePoint(std::chrono::seconds(*seconds));
}

// The first four bytes that the timelock calls the target with.
std::string selector_of(const timelock::Call& call) {
  if (!call.signature_bytes.empty()) return "";
  if (!call.signature.empty()) return to_hex0x(evm::selector(call.signature));
  return call.data.size() < kSelectorText ? "" : call.data.substr(0, kSelectorText);
}

std::string argument_text(const boost::json::value& value) {
  return value.is_string() ? std::string(value.as_string()) : boost::json::serialize(value);
}

notify::FlowCall call_of(const timelock::Call& call, const std::optional<timelock::ExplainedCall>& explained) {
  notify::FlowCall out{.target = call.target,
                       .value = to_decimal(call.value),
                       .data = call.data,
                       .signature = explained ? explained->signature : call.signature,
                       .selector = selector_of(call),
                       .arguments = {},
                       .explained = explained.has_value()};
  if (!explained) return out;
  for (const auto& argument : explained->arguments) {
    out.arguments.push_back({argument.name, argument.type, argument_text(argument.value)});
  }
  return out;
}

}  // namespace

awaitable<std::optional<notify::FlowFacts>> TimelockFlows::find_flow(notify::FlowRef ref) {
  const auto standard = timelock::kStandards.find(ref.standard);
  if (!standard) co_return std::nullopt;
  const timelock::FlowKey key{*standard, ref.chain_id, ref.contract, ref.flow_id};
  auto& pool = timelocks_.pool();
  const auto newest = ref.generation == 0;
  const auto flow = co_await timelock::find_flow(pool, key, newest ? std::nullopt : std::optional(ref.generation));
  if (!flow) co_return std::nullopt;
  ref.generation = flow->generation;
  const auto contract = co_await timelock::find_timelock(pool, {ref.chain_id, ref.contract});
  const auto found = co_await timelock::read_flow_calls(pool, key, flow->generation);
  notify::FlowFacts out{.ref = std::move(ref),
                        .contract_name = contract ? contract->remark : "",
                        .initiator = flow->initiator,
                        .via = flow->via,
                        .queued_at = time_of(flow->queued_at),
                        .due_at = time_of(flow->due_at),
                        .expires_at = time_of(flow->expired_at),
                        .blocked_by = flow->blocked_by,
                        .queue_tx_hash = flow->queue_tx_hash,
                        .calls = {}};
  for (std::size_t i = 0; i < found.calls.size(); ++i) {
    out.calls.push_back(call_of(found.calls[i], found.explained[i]));
  }
  co_return out;
}

awaitable<std::optional<notify::WatchedContract>> TimelockFlows::find_contract(std::int64_t chain_id,
                                                                               std::string address) {
  const auto contract = co_await timelock::find_timelock(timelocks_.pool(), {chain_id, std::move(address)});
  if (!contract) co_return std::nullopt;
  co_return notify::WatchedContract{.standard = std::string(timelock::kStandards.name(contract->standard)),
                                    .head = co_await head_of(chain_id)};
}

notify::ChainHead newest_head(std::int64_t chain_id, const std::vector<timelock::ScanReport>& reports,
                              const std::optional<evm::ChainStatus>& status) {
  if (status && !status->synced) {
    throw Exception(unavailable("rpc_unavailable",
                                fmt::format("This server does not know the newest block of chain {}: its endpoints do "
                                            "not answer, or it is catching up. Try again.",
                                            chain_id))
                        .after(std::chrono::seconds(5)));
  }
  notify::ChainHead out;
  const auto take = [&](std::int64_t block, std::int64_t seconds) {
    if (block > out.block) out = {.block = block, .timestamp = TimePoint(std::chrono::seconds(seconds))};
  };
  for (const auto& report : reports) {
    if (report.chain_id == chain_id) take(report.point.number, report.point.timestamp);
  }
  if (status && status->head) take(status->head->number, status->head->timestamp);
  return out;
}

awaitable<notify::ChainHead> TimelockFlows::head_of(std::int64_t chain_id) {
  std::optional<evm::ChainStatus> status;
  if (auto* chain = timelocks_.find_chain(chain_id)) status = co_await chain->status();
  const auto reports = co_await timelock::scan_reports(timelocks_.pool());
  co_return newest_head(chain_id, reports, status);
}

}  // namespace fencepost
