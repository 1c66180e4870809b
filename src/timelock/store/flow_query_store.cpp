#include "timelock/store/flow_query_store.hpp"

#include "timelock/store/event_columns.hpp"
#include "timelock/store/flow_list_statements.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

const sql::FlowList& list_for(const FlowFilter& filter) {
  if (filter.search == FlowSearch::kHash) return sql::kByHash;
  if (filter.search == FlowSearch::kAddress) return sql::kByAddress;
  if (filter.search == FlowSearch::kText) return sql::kByText;
  if (filter.contracts) return sql::kByContract;
  return filter.initiator ? sql::kByInitiator : sql::kByChain;
}

const Statement& statement_for(const FlowFilter& filter) {
  const auto& list = list_for(filter);
  if (filter.sort == FlowSort::kNewest) return list.newest;
  return filter.sort == FlowSort::kEta ? list.eta : list.latest_eta;
}

FlowKey flow_key_of(const pg::Row& row) {
  return {kStandards.find(row.get<std::string_view>("timelock_standard")).value(), row.get<std::int64_t>("chain_id"),
          row.get<std::string>("contract_address"), row.get<std::string>("flow_id")};
}

FlowView view_of(const pg::Row& row) {
  return {.key = flow_key_of(row),
          .generation = row.get<std::int64_t>("generation"),
          .status = kFlow.find(row.get<std::string_view>("status")).value(),
          .confirmed = row.get<bool>("confirmed"),
          .removed = row.get<bool>("removed"),
          .initiator = row.get<std::string>("initiator_address"),
          .via = row.get<std::optional<std::string>>("via_address"),
          .eta = row.get<std::string>("eta"),
          .due_at = row.get<std::optional<std::int64_t>>("due"),
          .expired_at = row.get<std::optional<std::int64_t>>("expiry"),
          .delay = row.get<std::optional<std::string>>("delay"),
          .predecessor = row.get<std::optional<std::string>>("predecessor"),
          .blocked_by = row.get<std::optional<std::string>>("blocked_by"),
          .queue_tx_hash = row.get<std::string>("queue_tx_hash"),
          .queued_at = row.get<std::int64_t>("queued"),
          .execute_tx_hash = row.get<std::optional<std::string>>("execute_tx_hash"),
          .executed_at = row.get<std::optional<std::int64_t>>("executed"),
          .cancel_tx_hash = row.get<std::optional<std::string>>("cancel_tx_hash"),
          .cancelled_at = row.get<std::optional<std::int64_t>>("cancelled"),
          .calls = row.get<std::int64_t>("calls"),
          .updated_at = row.get<TimePoint>("updated_at")};
}

Texts names_of(const std::vector<FlowStatus>& statuses) {
  Texts names;
  for (const auto status : statuses) names.emplace_back(kFlow.name(status));
  if (names.empty()) {
    for (const auto name : kFlow.names()) names.emplace_back(name);
  }
  return names;
}

}  // namespace

awaitable<std::vector<FlowView>> list_flows(pg::Pool& pool, FlowFilter filter) {
  const auto& statement = statement_for(filter);
  const auto after = filter.after.value_or(FlowPlace{.value = filter.sort == FlowSort::kEta ? "-1" : "Infinity"});
  auto params = pg::Params::of(names_of(filter.statuses), filter.chain_id, filter.contracts, filter.initiator);
  if (filter.standard) {
    params.add(kStandards.name(*filter.standard));
  } else {
    params.add(nullptr);
  }
  params.add(filter.removed).add(after.value).add(after.flow_id).add(after.chain_id).add(after.contract);
  params.add(after.generation).add(std::uint64_t{filter.limit});
  if (filter.search != FlowSearch::kNone) params.add(filter.text);
  pg::Batch batch;
  batch.add_params(statement, std::move(params));
  const auto results = co_await pool.run(std::move(batch), {.access = pg::Access::kRead});
  std::vector<FlowView> out;
  out.reserve(results[0].size());
  for (const auto row : results[0]) out.push_back(view_of(row));
  co_return out;
}

FlowPlace place_of(const FlowView& flow, FlowSort sort) {
  return {.value = sort == FlowSort::kNewest ? std::to_string(flow.queued_at) : flow.eta,
          .flow_id = flow.key.flow_id,
          .chain_id = flow.key.chain_id,
          .contract = flow.key.contract,
          .generation = flow.generation};
}

namespace {

constexpr Statement kListGenerations{"timelock_list_generations", R"(
  SELECT generation, status, removed
    FROM timelock_transaction_flows
   WHERE timelock_standard = $1
     AND chain_id = $2
     AND contract_address = $3
     AND flow_id = $4
   ORDER BY generation DESC
   LIMIT $5)"};

}  // namespace

awaitable<std::optional<FlowView>> find_flow(pg::Pool& pool, FlowKey key, std::optional<std::int64_t> generation) {
  const auto rows = co_await pool.query(sql::kFindFlow, kStandards.name(key.standard), key.chain_id, key.contract,
                                        key.flow_id, generation);
  if (rows.empty()) co_return std::nullopt;
  co_return view_of(rows.one());
}

awaitable<std::vector<GenerationView>> list_generations(pg::Pool& pool, FlowKey key, std::size_t limit) {
  const auto rows = co_await pool.query(kListGenerations, kStandards.name(key.standard), key.chain_id, key.contract,
                                        key.flow_id, std::uint64_t{limit});
  std::vector<GenerationView> out;
  for (const auto row : rows) {
    out.push_back({.number = row.get<std::int64_t>("generation"),
                   .status = kFlow.find(row.get<std::string_view>("status")).value(),
                   .removed = row.get<bool>("removed")});
  }
  co_return out;
}

awaitable<std::vector<StoredEvent>> list_flow_events(pg::Pool& pool, FlowKey key, std::size_t limit) {
  const bool compound = key.standard == Standard::kCompound;
  const auto rows = co_await pool.query(compound ? sql::kCompoundFlowEvents : sql::kOpenZeppelinFlowEvents,
                                        key.chain_id, key.contract, key.flow_id, std::uint64_t{limit});
  std::vector<StoredEvent> out;
  out.reserve(rows.size());
  for (const auto row : rows) {
    out.push_back({compound ? compound_event(row) : openzeppelin_event(row), row.get<bool>("orphaned")});
  }
  co_return out;
}

}  // namespace fencepost::timelock
