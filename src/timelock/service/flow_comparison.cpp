#include "timelock/service/flow_comparison.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/hex.hpp"
#include "evm/abi/abi.hpp"

namespace fencepost::timelock {
namespace {

std::string text_of(const std::string& value) {
  return value;
}
std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
std::string text_of(const Uint256& value) {
  return to_decimal(value);
}
std::string text_of(FlowStatus status) {
  return std::string(kFlow.name(status));
}
std::string text_of(const std::vector<FlowStatus>& told) {
  std::string out;
  for (const auto status : told) out.append(out.empty() ? "" : ", ").append(kFlow.name(status));
  return out.empty() ? "nothing" : out;
}
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "none";
}

std::optional<std::string> time_of(const std::optional<std::int64_t>& seconds) {
  if (!seconds) return std::nullopt;
  return to_rfc3339(TimePoint(std::chrono::seconds(*seconds)));
}

bool is_prefix(const std::vector<FlowStatus>& front, const std::vector<FlowStatus>& whole) {
  return front.size() <= whole.size() && std::equal(front.begin(), front.end(), whole.begin());
}

// What was announced so far, if the rest is still to come: the scanner finds the row by its tell_block.
std::vector<FlowStatus> expected_told(const FlowRow& stored, const FlowRow& folded) {
  const bool to_come = stored.tell_block && is_prefix(stored.told, folded.told);
  return to_come ? stored.told : folded.told;
}

class RowComparison {
 public:
  RowComparison(const FlowRow& stored, const FlowRow& folded, std::vector<Difference>& out)
      : stored_(stored), folded_(folded), out_(out) {}

  void run() {
    compare("status", stored_.status, folded_.status);
    compare("removed", stored_.removed, folded_.removed);
    compare("initiatorAddress", stored_.initiator, folded_.initiator);
    compare("viaAddress", stored_.via, folded_.via);
    compare("eta", stored_.eta, folded_.eta);
    compare("delay", stored_.delay, folded_.delay);
    compare("predecessor", stored_.predecessor, folded_.predecessor);
    compare("dueAt", time_of(stored_.due_at), time_of(folded_.due_at));
    compare("expiredAt", time_of(stored_.expired_at), time_of(folded_.expired_at));
    compare("queueTxHash", stored_.queue_tx_hash, folded_.queue_tx_hash);
    compare("queueBlock", stored_.queue_block, folded_.queue_block);
    compare("queuedAt", time_of(stored_.queued_at), time_of(folded_.queued_at));
    compare("endTxHash", stored_.end_tx_hash, folded_.end_tx_hash);
    compare("endBlock", stored_.end_block, folded_.end_block);
    compare("endedAt", time_of(stored_.ended_at), time_of(folded_.ended_at));
    compare("callCount", stored_.calls, folded_.calls);
    const auto told = expected_told(stored_, folded_);
    compare("told", stored_.told, told);
    compare("confirmed", stored_.confirmed, !told.empty() && told.back() == folded_.status);
  }

 private:
  template <class T>
  void compare(std::string_view what, const T& stored, const T& folded) {
    if (stored == folded) return;
    out_.push_back({folded_.key, folded_.generation, std::string(what), text_of(stored), text_of(folded)});
  }

  const FlowRow& stored_;
  const FlowRow& folded_;
  std::vector<Difference>& out_;
};

bool is_open(FlowStatus status) {
  return status == FlowStatus::kWaiting || status == FlowStatus::kReady || status == FlowStatus::kExpired;
}

std::string compound_text(const Uint256& answer) {
  return answer == 0 ? "the contract does not have it queued: executed or cancelled"
                     : "the contract has it queued: waiting, ready or expired";
}

std::string openzeppelin_text(const Uint256& answer) {
  if (answer == 0) return "the contract does not know it: cancelled";
  if (answer == 1) return "the contract has executed it";
  return fmt::format("the contract has it scheduled for {}: waiting or ready", to_decimal(answer));
}

// nullptr: no event queued the id on this branch.
bool agrees(const FlowRow* newest, Standard standard, const Uint256& answer) {
  if (newest == nullptr) return answer == 0;
  if (standard == Standard::kCompound) return (answer != 0) == is_open(newest->status);
  if (newest->status == FlowStatus::kCancelled) return answer == 0;
  if (newest->status == FlowStatus::kExecuted) return answer == 1;
  return answer == newest->eta;
}

}  // namespace

std::vector<Difference> compare_with_events(const FlowInput& input, const ChainView& view) {
  const auto folded = input.key.standard == Standard::kCompound ? process_compound_flow(input, view)
                                                                : process_openzeppelin_flow(input, view);
  std::vector<Difference> out;
  for (const auto& row : folded.rows) {
    const auto stored = std::ranges::find(input.stored, row.generation, &FlowRow::generation);
    if (stored == input.stored.end()) {
      out.push_back({row.key, row.generation, "missing", "none", text_of(row.status)});
    } else if (row.removed && !stored->removed) {
      out.push_back({row.key, row.generation, "extra", text_of(stored->status), "none: no event queued it"});
    } else {
      RowComparison(*stored, row, out).run();
    }
  }
  return out;
}

bool is_lagging(const FlowRow& flow, std::int64_t clock) {
  if (!flow.confirmed || flow.removed) return false;
  const bool waiting = flow.status == FlowStatus::kWaiting;
  const bool due = waiting && flow.due_at && *flow.due_at <= clock;
  const bool late = (waiting || flow.status == FlowStatus::kReady) && flow.expired_at && *flow.expired_at < clock;
  return due || late;
}

std::string contract_question(const FlowKey& key) {
  const auto* function = key.standard == Standard::kCompound ? "queuedTransactions(bytes32)" : "getTimestamp(bytes32)";
  auto data = evm::AbiWriter(evm::selector(function)).take();
  return to_hex0x(data) + key.flow_id.substr(2);
}

std::optional<Difference> compare_with_contract(std::span<const FlowRow> stored, const Uint256& answer) {
  if (stored.empty()) return std::nullopt;
  const FlowRow* newest = nullptr;
  for (const auto& row : stored) {
    if (!row.removed) newest = &row;
  }
  const auto standard = stored.front().key.standard;
  if (agrees(newest, standard, answer)) return std::nullopt;
  const auto& row = newest != nullptr ? *newest : stored.back();
  return Difference{row.key, row.generation, "contract",
                    newest == nullptr ? "removed by a reorg"
                                      : fmt::format("{}, eta {}", text_of(newest->status), to_decimal(newest->eta)),
                    standard == Standard::kCompound ? compound_text(answer) : openzeppelin_text(answer)};
}

}  // namespace fencepost::timelock
