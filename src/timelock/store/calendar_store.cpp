#include "timelock/store/calendar_store.hpp"

#include <iterator>

#include "timelock/store/event_columns.hpp"

namespace fencepost::timelock {

const pg::Statement sql::kCalendarTexts{"timelock_calendar_texts", R"(
  SELECT t.remark,
         coalesce((SELECT e.event_signature
                     FROM compound_timelock_transactions AS e
                    WHERE e.chain_id = k.chain_id
                      AND e.contract_address = k.contract_address
                      AND )" FENCEPOST_OF_FLOW("e.event_tx_hash", "k.flow_id") R"(
                    LIMIT 1), '') AS signature
    FROM unnest($1::bigint[], $2::text[], $3::text[])
         WITH ORDINALITY AS k(chain_id, contract_address, flow_id, place)
    LEFT JOIN timelock AS t USING (chain_id, contract_address)
   ORDER BY k.place)"};

awaitable<std::vector<FlowView>> calendar_flows(pg::Pool& pool, FlowFilter filter, std::size_t waiting,
                                                std::size_t ready) {
  filter.statuses = {FlowStatus::kWaiting};
  filter.sort = FlowSort::kEta;
  filter.limit = waiting;
  auto flows = co_await list_flows(pool, filter);
  filter.statuses = {FlowStatus::kReady};
  filter.sort = FlowSort::kLatestEta;
  filter.limit = ready;
  auto latest = co_await list_flows(pool, std::move(filter));
  flows.insert(flows.end(), std::make_move_iterator(latest.begin()), std::make_move_iterator(latest.end()));
  co_return flows;
}

awaitable<std::vector<CalendarText>> calendar_texts(pg::Pool& pool, std::vector<FlowView> flows) {
  KeyColumns keys;
  for (const auto& flow : flows) keys.add(flow.key);
  const auto rows = co_await pool.query(sql::kCalendarTexts, keys.chains, keys.contracts, keys.flows);
  std::vector<CalendarText> out;
  out.reserve(rows.size());
  for (const auto row : rows) {
    out.push_back({row.get<std::optional<std::string>>("remark").value_or(""), row.get<std::string>("signature")});
  }
  co_return out;
}

}  // namespace fencepost::timelock
