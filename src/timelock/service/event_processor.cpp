#include "timelock/service/event_processor.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/clock.hpp"
#include "timelock/model/changes.hpp"

namespace fencepost::timelock {
namespace {

constexpr std::string_view kNoPredecessor = "0x0000000000000000000000000000000000000000000000000000000000000000";

void copy_facts(FlowRow& row, const Generation& now, const FlowInput& input) {
  row.initiator = now.queue.initiator;
  row.via = now.queue.via == input.key.contract ? std::nullopt : now.queue.via;
  row.eta = now.eta;
  row.delay = now.delay;
  const bool has_predecessor = !now.predecessor.empty() && now.predecessor != kNoPredecessor;
  row.predecessor = has_predecessor ? std::optional(now.predecessor) : std::nullopt;
  row.due_at = due_time(now.eta);
  const bool expires = input.key.standard == Standard::kCompound;
  row.expired_at = expires ? due_time(expires_after(now.eta, input.grace)) : std::nullopt;
  row.queue_tx_hash = now.queue.tx_hash;
  row.queue_block = now.queue.position.block_number;
  row.queued_at = now.queue.timestamp;
  row.end_tx_hash = now.end ? std::optional(now.end->tx_hash) : std::nullopt;
  row.end_block = now.end ? std::optional(now.end->position.block_number) : std::nullopt;
  row.ended_at = now.end ? std::optional(now.end->timestamp) : std::nullopt;
  row.calls = static_cast<std::int64_t>(now.calls.size());
}

ToldFacts facts_of(const FlowRow& row) {
  return {.queue_tx_hash = row.queue_tx_hash,
          .queue_at = row.queued_at,
          .ready_at = row.due_at.value_or(0),
          .expired_at = row.expired_at.value_or(0),
          .end_tx_hash = row.end_tx_hash.value_or(""),
          .end_at = row.ended_at.value_or(0)};
}

std::string_view why_of(const Change& change) {
  if (change.retracted) return "a reorg undid it";
  return change.to == FlowStatus::kWaiting ? "queued on chain" : "an event on chain";
}

// The block of the event that made the change; none for a retraction, whose event is gone.
std::optional<std::int64_t> block_of(const FlowRow& row, const Change& change) {
  if (change.retracted) return std::nullopt;
  return change.to == FlowStatus::kWaiting ? std::optional(row.queue_block) : row.end_block;
}

// The data of a FlowStatusChanged event.
std::string flow_event_json(const FlowRow& flow, const Change& change, std::optional<std::int64_t> block_number) {
  boost::json::object data{
      {"standard", kStandards.name(flow.key.standard)},
      {"chainId", flow.key.chain_id},
      {"contractAddress", flow.key.contract},
      {"flowId", flow.key.flow_id},
      {"generation", flow.generation},
      {"statusFrom", nullptr},
      {"statusTo", kFlow.name(change.to)},
      {"txHash", nullptr},
      {"blockNumber", nullptr},
      {"initiatorAddress", flow.initiator},
      {"viaAddress", nullptr},
      {"changedAt", to_rfc3339(TimePoint(std::chrono::seconds(change.changed_at)))},
      {"retracted", change.retracted},
      {"retraction", flow.retractions},
  };
  if (change.from) data["statusFrom"] = kFlow.name(*change.from);
  if (!change.tx_hash.empty()) data["txHash"] = change.tx_hash;
  if (block_number) data["blockNumber"] = *block_number;
  if (flow.via) data["viaAddress"] = *flow.via;
  return boost::json::serialize(data);
}

// A retraction stands in the history as a step back.
FlowEvent event_of(const FlowRow& row, const Change& change) {
  FlowEvent event{.subject = flow_subject(row.key),
                  .from_state = {},
                  .to_state = std::string(kFlow.name(change.to)),
                  .why = std::string(why_of(change)),
                  .data = flow_event_json(row, change, block_of(row, change))};
  if (change.from) event.from_state = kFlow.name(*change.from);
  if (change.retracted) {
    event.to_state = change.from ? std::string(kFlow.name(*change.from)) : "removed";
    event.from_state = kFlow.name(change.to);
  }
  return event;
}

// `stored`: the row as it is; nullptr: there is none. `now`: the generation; nullopt: it is gone.
void process_generation(const FlowInput& input, const ChainView& view, const FlowRow* stored,
                        const std::optional<Generation>& now, FlowOutput& out) {
  auto row = stored != nullptr ? *stored : FlowRow{.key = input.key, .generation = now->number};
  const auto before = facts_of(row);
  const auto confirmed_block = input.may_tell ? view.confirmed_block() : std::int64_t{-1};
  const auto outcome = tell(row.told, now, before, view.clock, confirmed_block, input.grace, input.key.standard);
  if (now) {
    copy_facts(row, *now, input);
    row.status = outcome.status;
  }
  row.confirmed = outcome.confirmed;
  row.removed = !now;
  row.told = outcome.told;
  row.tell_block.reset();
  if (outcome.next_block) row.tell_block = *outcome.next_block + view.confirmations;
  for (const auto& change : outcome.changes) {
    if (change.retracted) ++row.retractions;
    out.events.push_back(event_of(row, change));
  }
  if (stored == nullptr || row != *stored) out.rows.push_back(std::move(row));
}

FlowOutput process_flow(const FlowInput& input, const ChainView& view) {
  std::map<std::int64_t, const FlowRow*> stored;
  for (const auto& row : input.stored) stored.emplace(row.generation, &row);
  std::map<std::int64_t, Generation> generations;
  for (auto& generation : fold(input.events)) {
    stored.try_emplace(generation.number, nullptr);
    generations.emplace(generation.number, std::move(generation));
  }
  FlowOutput out;
  for (const auto& [number, row] : stored) {
    const auto found = generations.find(number);
    const auto now = found == generations.end() ? std::nullopt : std::optional(found->second);
    process_generation(input, view, row, now, out);
  }
  return out;
}

}  // namespace

FlowOutput process_compound_flow(const FlowInput& input, const ChainView& view) {
  return process_flow(input, view);
}

// The controller has no grace period: an operation stays ready for ever.
FlowOutput process_openzeppelin_flow(const FlowInput& input, const ChainView& view) {
  return process_flow(input, view);
}

awaitable<> EventProcessor::process(pg::Transaction& tx, std::int64_t chain_id, FlowKeys keys, ChainView view) const {
  if (keys.empty()) co_return;
  std::map<FlowKey, FlowInput> inputs;
  std::map<std::string, ContractFacts> contracts;
  for (auto& facts : co_await contract_facts(tx, chain_id, keys)) contracts.emplace(facts.address, std::move(facts));
  for (const auto& key : keys) {
    const auto found = contracts.find(key.contract);
    if (found == contracts.end()) continue;
    inputs.emplace(key, FlowInput{.key = key,
                                  .events = {},
                                  .stored = {},
                                  .grace = found->second.grace,
                                  .may_tell = found->second.history_done});
  }
  for (auto& row : co_await lock_flows(tx, keys)) {
    const auto key = row.key;
    inputs.at(key).stored.push_back(std::move(row));
  }
  for (auto& event : co_await load_events(tx, keys)) {
    const auto found = inputs.find({event.standard, event.chain_id, event.contract, event.flow_id});
    if (found != inputs.end()) found->second.events.push_back(std::move(event));
  }
  FlowOutput all;
  for (const auto& [key, input] : inputs) {
    auto one = key.standard == Standard::kCompound ? process_compound_flow(input, view)
                                                   : process_openzeppelin_flow(input, view);
    std::ranges::move(one.rows, std::back_inserter(all.rows));
    std::ranges::move(one.events, std::back_inserter(all.events));
  }
  co_await save_flows(tx, std::move(all.rows), std::move(all.events), node_);
}

}  // namespace fencepost::timelock
