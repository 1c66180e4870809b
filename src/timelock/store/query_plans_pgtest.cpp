// Checks the plans of the statements that read flows: each is a walk along an index, whatever the planner believes
// about the tables when it makes the plan.
#include <gtest/gtest.h>

#include "tests/support/postgres.hpp"
#include "tests/support/query_plan.hpp"
#include "timelock/store/calendar_store.hpp"
#include "timelock/store/contract_query_store.hpp"
#include "timelock/store/due_store.hpp"
#include "timelock/store/flow_list_statements.hpp"
#include "timelock/store/flow_store.hpp"

namespace fencepost::timelock {
namespace {

// 20,000 flows of 20 contracts, each with the event that queued it; most have ended.
constexpr std::string_view kManyFlows = R"(
  INSERT INTO timelock_scan (chain_id, block_number, block_hash, block_timestamp) VALUES (1, 1000, '0x', now());
  INSERT INTO timelock (chain_id, contract_address, standard, from_block, history_next, history_last, history_done_at,
                        created_by)
  SELECT 1, '0x' || lpad(to_hex(n), 40, '0'), CASE WHEN n % 2 = 0 THEN 'compound' ELSE 'openzeppelin' END, 0, 1, 0, now(),
         'test'
    FROM generate_series(0, 19) AS n;
  INSERT INTO timelock_transaction_flows
         (timelock_standard, chain_id, contract_address, flow_id, generation, status, confirmed, initiator_address,
          via_address, eta, due_at, expired_at, queue_tx_hash, queue_block, queued_at, execute_tx_hash, executed_at, calls,
          told)
  SELECT CASE WHEN n % 2 = 0 THEN 'compound' ELSE 'openzeppelin' END, 1, '0x' || lpad(to_hex(n % 20), 40, '0'),
         '0x' || lpad(to_hex(n), 64, '0'), 1, s.status, true, '0x' || lpad(to_hex(n % 7), 40, '0'),
         CASE WHEN n % 3 = 0 THEN '0x' || lpad('1', 40, '0') END, 1600000000 + n, to_timestamp(1600000000 + n),
         CASE WHEN n % 2 = 0 THEN to_timestamp(1700000000 + n) END, '0x' || lpad(to_hex(16777216 + n), 64, '1'), n,
         to_timestamp(1500000000 + n), CASE WHEN s.status = 'executed' THEN '0x' || lpad(to_hex(16777216 + n), 64, '2') END,
         CASE WHEN s.status = 'executed' THEN to_timestamp(1650000000 + n) END, 1, '{waiting}'
    FROM generate_series(0, 19999) AS n,
         LATERAL (SELECT CASE WHEN n % 10 = 0 THEN 'waiting' WHEN n % 10 = 1 THEN 'ready'
                              WHEN n % 10 = 2 THEN 'expired' ELSE 'executed' END) AS s(status);
  INSERT INTO compound_timelock_transactions
  SELECT chain_id, contract_address, 'QueueTransaction', flow_id, initiator_address, 0, 'f' || queue_block || '()', NULL,
         '0x', eta, queue_tx_hash, initiator_address, NULL, queue_block, queue_tx_hash, queued_at, 0
    FROM timelock_transaction_flows
   WHERE timelock_standard = 'compound';
  INSERT INTO openzeppelin_timelock_transactions
         (chain_id, contract_address, event_type, event_id, event_target, tx_hash, from_address, block_number, block_hash,
          block_timestamp, log_index)
  SELECT chain_id, contract_address, 'CallScheduled', flow_id, initiator_address, queue_tx_hash, initiator_address,
         queue_block, queue_tx_hash, queued_at, 0
    FROM timelock_transaction_flows
   WHERE timelock_standard = 'openzeppelin';
  ANALYZE)";

struct Expected {
  const pg::Statement& statement;
  std::vector<std::string> indexes;  // the plan must use each of them
  bool list = false;                 // for people: its plan may be poor until the tables have statistics
};

const std::string kFlowsByKey = "timelock_transaction_flows_pkey";
const std::string kCompound = "idx_compound_timelock_transactions_";
const std::string kOpenZeppelin = "idx_openzeppelin_timelock_transactions_";

std::vector<Expected> expected() {
  std::vector<Expected> all{
      {sql::kWaitingDue, {"idx_timelock_flows_due"}},
      {sql::kExpired, {"idx_timelock_flows_expiry"}},
      {sql::kUpdateStatus, {}},
      {sql::kRemindExpiring, {"idx_timelock_flows_expiry"}},
      {sql::kRemindReady, {"idx_timelock_flows_unreminded"}},
      {sql::kAhead, {"idx_timelock_flows_eta", "idx_timelock_flows_expired"}},
      {sql::kLockFlows, {kFlowsByKey}},
      {sql::kUntold, {"idx_timelock_flows_tell"}},
      {sql::kLoadCompound, {kCompound + "flow"}},
      {sql::kLoadOpenZeppelin, {kOpenZeppelin + "flow"}},
      {sql::kCompoundFlowEvents, {kCompound + "flow"}},
      {sql::kOpenZeppelinFlowEvents, {kOpenZeppelin + "flow"}},
      {sql::kCalendarTexts, {kCompound + "flow"}},
      {sql::kFindFlow, {kFlowsByKey}, true},
      {sql::kNextDue, {"idx_timelock_flows_contract_eta"}, true},
      {sql::kLastEvent, {kCompound + "contract", kOpenZeppelin + "contract"}, true},
  };
  // `by` names an index of newest flows; the one of the same flows by eta has "_eta" behind its name.
  const auto add = [&](const sql::FlowList& list, const std::vector<std::string>& by, std::vector<std::string> more) {
    std::vector<std::string> newest = more, eta = std::move(more);
    for (const auto& name : by) {
      newest.push_back(name);
      eta.push_back(name == "idx_timelock_flows_newest" ? "idx_timelock_flows_eta" : name + "_eta");
    }
    all.push_back({list.newest, newest, true});
    all.push_back({list.eta, eta, true});
    all.push_back({list.latest_eta, eta, true});
  };
  const std::string contract = "idx_timelock_flows_contract", initiator = "idx_timelock_flows_initiator";
  add(sql::kByChain, {"idx_timelock_flows_newest"}, {});
  add(sql::kByContract, {contract}, {});
  add(sql::kByInitiator, {initiator}, {});
  add(sql::kByHash, {}, {kFlowsByKey, kCompound + "tx", kOpenZeppelin + "tx"});
  add(sql::kByAddress, {contract, initiator, "idx_timelock_flows_via"},
      {kFlowsByKey, kCompound + "target", kOpenZeppelin + "target"});
  add(sql::kByText, {contract}, {kFlowsByKey, kCompound + "signature"});
  return all;
}

struct Beginning {
  std::string name;
  std::string fill;
  bool has_data = false;
};

void PrintTo(const Beginning& beginning, std::ostream* out) {
  *out << beginning.name;
}

class FlowPlans : public ::testing::TestWithParam<Beginning> {};

TEST_P(FlowPlans, read_by_index) {
  const test::TestDatabase db(test::Template::kMigrated);
  if (!GetParam().fill.empty()) db.exec(GetParam().fill);
  interleaving::Session session(db.dsn(), "planner");
  session.must("SET plan_cache_mode = force_generic_plan");
  session.must("SET enable_seqscan = off");  // as Connector does
  for (const auto& [statement, indexes, list] : expected()) {
    if (list && !GetParam().has_data) continue;
    SCOPED_TRACE(std::string(statement.name));
    const auto plan = test::plan_of(statement, session);
    for (const auto& table : plan.whole) {
      const bool large = table.starts_with("timelock_transaction_flows") || table.contains("timelock_transactions");
      EXPECT_FALSE(large) << "reads all of " << table << "\n" << plan.text;
    }
    for (const auto& index : indexes) EXPECT_TRUE(plan.indexes.contains(index)) << index << "\n" << plan.text;
  }
}

INSTANTIATE_TEST_SUITE_P(on, FlowPlans,
                         ::testing::Values(Beginning{"empty_tables", ""},
                                           Beginning{"tables_analyzed_while_empty", "ANALYZE"},
                                           Beginning{"large_tables", std::string(kManyFlows), true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fencepost::timelock
