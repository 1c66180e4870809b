#include "timelock/store/event_columns.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace fencepost::timelock {
namespace {

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

bool has_call(EventType type) {
  return type == EventType::kCallScheduled || type == EventType::kCallExecuted;
}

RawEvent placed_event(const pg::Row& row, Standard standard) {
  RawEvent event;
  event.standard = standard;
  event.type = kEventTypes.find(row.get<std::string_view>("event_type")).value();
  event.chain_id = row.get<std::int64_t>("chain_id");
  event.contract = row.get<std::string>("contract_address");
  event.position = {row.get<std::int64_t>("block_number"), row.get<std::int64_t>("log_index")};
  event.block_hash = row.get<std::string>("block_hash");
  event.block_timestamp = row.get<std::int64_t>("seconds");
  event.tx_hash = row.get<std::string>("tx_hash");
  event.tx_from = row.get<std::string>("from_address");
  event.tx_to = row.get<std::optional<std::string>>("to_address");
  return event;
}

Uint256 number(const pg::Row& row, std::string_view column) {
  return parse_decimal(row.get<std::string_view>(column)).value();
}

}  // namespace

void EventPlaces::add(const RawEvent& event) {
  contracts.push_back(event.contract);
  types.emplace_back(kEventTypes.name(event.type));
  tx_hashes.push_back(event.tx_hash);
  senders.push_back(event.tx_from);
  receivers.push_back(event.tx_to);
  numbers.push_back(event.position.block_number);
  hashes.push_back(event.block_hash);
  seconds.push_back(event.block_timestamp);
  indexes.push_back(event.position.log_index);
}

pg::Params EventPlaces::params(std::int64_t chain_id) const {
  return pg::Params::of(chain_id, contracts, types, tx_hashes, senders, receivers, numbers, hashes, seconds, indexes);
}

void CompoundColumns::add(const RawEvent& event) {
  places.add(event);
  flows.push_back(event.flow_id);
  targets.push_back(event.call.target);
  values.push_back(to_decimal(event.call.value));
  signatures.push_back(event.call.signature);
  signature_bytes.push_back(unless_empty(event.call.signature_bytes));
  data.push_back(event.call.data);
  etas.push_back(to_decimal(event.eta.value()));
}

pg::Params CompoundColumns::params(std::int64_t chain_id) const {
  auto params = places.params(chain_id);
  params.add(flows).add(targets).add(values).add(signatures).add(signature_bytes).add(data).add(etas);
  return params;
}

void OpenZeppelinColumns::add(const RawEvent& event) {
  const bool call = has_call(event.type);
  places.add(event);
  flows.push_back(event.flow_id);
  indexes.push_back(call ? std::optional(event.call.index) : std::nullopt);
  targets.push_back(call ? std::optional(event.call.target) : std::nullopt);
  values.push_back(call ? std::optional(to_decimal(event.call.value)) : std::nullopt);
  data.push_back(call ? std::optional(event.call.data) : std::nullopt);
  predecessors.push_back(unless_empty(event.predecessor));
  delays.push_back(event.delay ? std::optional(to_decimal(*event.delay)) : std::nullopt);
  salts.push_back(unless_empty(event.salt));
}

pg::Params OpenZeppelinColumns::params(std::int64_t chain_id) const {
  auto params = places.params(chain_id);
  params.add(flows).add(indexes).add(targets).add(values).add(data).add(predecessors).add(delays).add(salts);
  return params;
}

void GuardColumns::add(const RawEvent& event) {
  places.add(event);
  boost::json::object object;
  for (const auto& [name, value] : event.guard) object[name] = value;
  arguments.push_back(boost::json::serialize(object));
}

pg::Params GuardColumns::params(std::int64_t chain_id) const {
  auto params = places.params(chain_id);
  params.add(arguments);
  return params;
}

void KeyColumns::add(const FlowKey& key) {
  chains.push_back(key.chain_id);
  contracts.push_back(key.contract);
  flows.push_back(key.flow_id);
}

RawEvent compound_event(const pg::Row& row) {
  auto event = placed_event(row, Standard::kCompound);
  event.flow_id = row.get<std::string>("event_tx_hash");
  event.call = {.index = 0,
                .target = row.get<std::string>("event_target"),
                .value = number(row, "event_value"),
                .signature = row.get<std::string>("event_signature"),
                .signature_bytes = row.get<std::optional<std::string>>("event_signature_bytes").value_or(""),
                .data = row.get<std::string>("event_data")};
  event.eta = number(row, "event_eta");
  return event;
}

RawEvent openzeppelin_event(const pg::Row& row) {
  auto event = placed_event(row, Standard::kOpenZeppelin);
  event.flow_id = row.get<std::string>("event_id");
  if (has_call(event.type)) {
    event.call = {.index = row.get<std::int64_t>("event_index"),
                  .target = row.get<std::string>("event_target"),
                  .value = number(row, "event_value"),
                  .signature = {},
                  .signature_bytes = {},
                  .data = row.get<std::string>("event_data")};
  }
  if (!row.is_null("event_delay")) event.delay = number(row, "event_delay");
  event.predecessor = row.get<std::optional<std::string>>("event_predecessor").value_or("");
  event.salt = row.get<std::optional<std::string>>("event_salt").value_or("");
  return event;
}

}  // namespace fencepost::timelock
