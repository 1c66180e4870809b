#include "timelock/routes/flow_json.hpp"

#include "base/json.hpp"

namespace fencepost::timelock {
namespace {

namespace json = boost::json;

constexpr std::int64_t kEndOfYear9999 = 253'402'300'799;

json::value unless_empty(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

bool has_call(EventType type) {
  return type != EventType::kCallSalt && type != EventType::kCancelled;
}

}  // namespace

json::value time_json(std::optional<std::int64_t> seconds) {
  if (!seconds || *seconds > kEndOfYear9999) return nullptr;
  return json::value(to_rfc3339(TimePoint(std::chrono::seconds(*seconds))));
}

json::object to_json(const FlowView& flow) {
  return {{"standard", kStandards.name(flow.key.standard)},
          {"chainId", flow.key.chain_id},
          {"contractAddress", flow.key.contract},
          {"flowId", flow.key.flow_id},
          {"generation", flow.generation},
          {"status", kFlow.name(flow.status)},
          {"confirmed", flow.confirmed},
          {"removed", flow.removed},
          {"initiatorAddress", flow.initiator},
          {"viaAddress", optional_json(flow.via)},
          {"eta", flow.eta},
          {"dueAt", time_json(flow.due_at)},
          {"expiredAt", time_json(flow.expired_at)},
          {"delay", optional_json(flow.delay)},
          {"predecessor", optional_json(flow.predecessor)},
          {"blockedBy", optional_json(flow.blocked_by)},
          {"queueTxHash", flow.queue_tx_hash},
          {"queuedAt", time_json(flow.queued_at)},
          {"executeTxHash", optional_json(flow.execute_tx_hash)},
          {"executedAt", time_json(flow.executed_at)},
          {"cancelTxHash", optional_json(flow.cancel_tx_hash)},
          {"cancelledAt", time_json(flow.cancelled_at)},
          {"callCount", flow.calls},
          {"updatedAt", to_rfc3339(flow.updated_at)}};
}

json::object to_json(const Call& call, const std::optional<ExplainedCall>& explained) {
  return {{"index", call.index},
          {"target", call.target},
          {"value", to_decimal(call.value)},
          {"signature", unless_empty(call.signature)},
          {"data", call.data},
          {"explained", explained ? json::value(to_json(*explained)) : json::value(nullptr)}};
}

// A member that the event does not have is null.
json::object to_json(const StoredEvent& stored) {
  const auto& event = stored.event;
  const bool call = has_call(event.type);
  json::object out{{"event", kEventTypes.name(event.type)},
                   {"index", call ? json::value(event.call.index) : json::value(nullptr)},
                   {"target", call ? json::value(event.call.target) : json::value(nullptr)},
                   {"value", call ? json::value(to_decimal(event.call.value)) : json::value(nullptr)},
                   {"signature", unless_empty(event.call.signature)},
                   {"data", call ? json::value(event.call.data) : json::value(nullptr)},
                   {"eta", event.eta ? json::value(to_decimal(*event.eta)) : json::value(nullptr)},
                   {"delay", event.delay ? json::value(to_decimal(*event.delay)) : json::value(nullptr)},
                   {"predecessor", unless_empty(event.predecessor)},
                   {"salt", unless_empty(event.salt)}};
  out["txHash"] = event.tx_hash;
  out["blockNumber"] = event.position.block_number;
  out["blockHash"] = event.block_hash;
  out["blockTime"] = time_json(event.block_timestamp);
  out["logIndex"] = event.position.log_index;
  out["from"] = event.tx_from;
  out["to"] = optional_json(event.tx_to);
  out["orphaned"] = stored.orphaned;
  return out;
}

json::object to_json(const GenerationView& generation) {
  return {
      {"generation", generation.number}, {"status", kFlow.name(generation.status)}, {"removed", generation.removed}};
}

}  // namespace fencepost::timelock
