// Checks the plans of the frequent statements with 200,000 finished and 5,000 open transactions. A plan that reads the
// whole table, or all finished transactions, would otherwise be noticed only in production.
#include <set>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "tx/store/attempt_store.hpp"
#include "tx/store/create_store.hpp"
#include "tx/store/cursor_store.hpp"
#include "tx/store/fence.hpp"
#include "tx/store/protocol_test_support.hpp"
#include "tx/store/step_store.hpp"
#include "tx/store/tx_store.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {
namespace {

// 200 signers with 1,000 finished transactions and 25 open ones each; node-a leads 50 of them.
// The indexes are built after the inserts, which takes a third of the time.
constexpr std::string_view kFill = R"(
  CREATE TEMP TABLE later AS
  SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'managed_tx' AND indexname <> 'managed_tx_pkey';
  DO $$ DECLARE i record; BEGIN FOR i IN SELECT * FROM later LOOP EXECUTE 'DROP INDEX ' || i.indexname; END LOOP; END $$;
  INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at)
  SELECT 31337, '0x' || lpad(to_hex(s), 40, '0'), CASE WHEN s < 50 THEN 'node-a' WHEN s < 100 THEN 'node-b' ELSE '' END,
         1, CASE WHEN s < 100 THEN timestamptz 'infinity' ELSE timestamptz '-infinity' END
    FROM generate_series(0, 199) AS s;
  INSERT INTO signer_nonce_cursor (chain_id, signer, next_nonce, next_creation)
  SELECT chain_id, signer, 1020, 1025 FROM signer_lease;
  INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, nonce, payload, payload_hash, gas_limit,
                          tx_hash, state, next_resubmit_at, first_submitted_at, receipt, receipt_block, receipt_hash,
                          confirmed_at, fencing_token)
  SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i * 200 + s), 12, '0'))::uuid, 31337,
         '0x' || lpad(to_hex(s), 40, '0'), 'r' || i, i, CASE WHEN i < 1020 THEN i END,
         '{"to":"0x0000000000000000000000000000000000000001","value":"1"}', '\x00', 21000,
         CASE WHEN i < 1015 THEN '0x' || lpad(to_hex(i * 200 + s), 64, '0') END,
         CASE WHEN i < 990 THEN 'CONFIRMED'
              WHEN i < 1000 THEN 'FAILED_FINAL'
              WHEN i < 1002 THEN 'STUCK'
              WHEN i < 1015 THEN 'TRACKING'
              WHEN i < 1020 THEN 'ALLOCATED'
              ELSE 'CREATED'
         END,
         CASE WHEN i < 1020 THEN clock_timestamp() + (i - 1018) * interval '1 s' END,
         CASE WHEN i < 1015 THEN clock_timestamp() END,
         CASE WHEN mined THEN jsonb '{"status":"0x1"}' END,
         CASE WHEN mined THEN i END,
         CASE WHEN mined THEN '0x' END,
         CASE WHEN i < 1000 THEN clock_timestamp() END, 1
    FROM generate_series(0, 1024) AS i,
         generate_series(0, 199) AS s,
         LATERAL (SELECT i < 1000 OR i BETWEEN 1002 AND 1004) AS m(mined);
  INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fencing_token)
  SELECT chain_id, tx_hash, tx_id, 1, 'original', '\x0102', 1
    FROM managed_tx
   WHERE tx_hash IS NOT NULL
     AND (creation_seq >= 1000 OR creation_seq % 10 = 0);
  DO $$ DECLARE i record; BEGIN FOR i IN SELECT * FROM later LOOP EXECUTE i.indexdef; END LOOP; END $$;
  ANALYZE)";

// 100 signers whose transactions have all ended, with the indexes that the migration created.
constexpr std::string_view kAllEnded = R"(
  INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at)
  SELECT 31337, '0x' || lpad(to_hex(s), 40, '0'), 'node-a', 1, timestamptz 'infinity' FROM generate_series(0, 99) AS s;
  INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, nonce, payload, payload_hash, gas_limit,
                          tx_hash, state, receipt, receipt_block, receipt_hash, confirmed_at)
  SELECT gen_random_uuid(), 31337, signer, 'r' || i, i, i, '{}', '', 21000,
         '0x' || replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'CONFIRMED', '{"status":"0x1"}', i,
         '0x', clock_timestamp()
    FROM signer_lease, generate_series(0, 99) AS i;
  INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fencing_token)
  SELECT chain_id, tx_hash, tx_id, 1, 'original', '\x0102', 1 FROM managed_tx;
  ANALYZE)";

class QueryPlans : public ::testing::Test {
 protected:
  // One database for all tests: filling it takes seconds, and no test writes to it.
  static void SetUpTestSuite() {
    db = std::make_unique<test::TestDatabase>(test::Template::kMigrated);
    db->exec(std::string(kFill));
    filled = std::make_unique<interleaving::Session>(db->dsn(), "planner");
    filled->must("SET plan_cache_mode = force_generic_plan");
  }
  static void TearDownTestSuite() {
    filled.reset();
    db.reset();
  }

  // What a plan reads: "Seq Scan managed_tx", "idx_managed_tx_mined", …
  struct Plan {
    std::set<std::string> scans;
    std::set<std::string> indexes;
    std::string conditions;  // of the indexes
    std::string text;
  };

  static void read_node(const boost::json::object& node, Plan& plan) {
    const auto& type = node.at("Node Type").as_string();
    if (type.ends_with("Seq Scan")) plan.scans.emplace(node.at("Relation Name").as_string());
    if (const auto* index = node.if_contains("Index Name")) plan.indexes.emplace(index->as_string());
    if (const auto* condition = node.if_contains("Index Cond")) plan.conditions += condition->as_string();
    if (const auto* children = node.if_contains("Plans")) {
      for (const auto& child : children->as_array()) read_node(child.as_object(), plan);
    }
  }

  static Plan plan_of(const pg::Statement& statement, interleaving::Session* session = filled.get()) {
    const std::string sql(statement.sql);
    int parameters = 0;
    for (std::size_t at = 0; (at = sql.find('$', at)) != std::string::npos; ++at) {
      parameters = std::max(parameters, std::atoi(sql.c_str() + at + 1));
    }
    std::string nulls;
    for (int i = 0; i < parameters; ++i) nulls += i == 0 ? "(NULL" : ", NULL";
    if (!nulls.empty()) nulls += ")";
    session->must(fmt::format("PREPARE {} AS {}", statement.name, sql));
    const auto rows = session->must(fmt::format("EXPLAIN (FORMAT JSON) EXECUTE {}{}", statement.name, nulls));
    Plan plan;
    plan.text = rows.one().get<std::string>(0);
    read_node(boost::json::parse(plan.text).at(0).at("Plan").as_object(), plan);
    return plan;
  }

  static std::unique_ptr<test::TestDatabase> db;
  static std::unique_ptr<interleaving::Session> filled;
};
std::unique_ptr<test::TestDatabase> QueryPlans::db;
std::unique_ptr<interleaving::Session> QueryPlans::filled;

struct Expected {
  const pg::Statement& statement;
  std::vector<std::string> indexes;     // the plan must use each of them
  std::vector<std::string> conditions;  // the plan must look up each of them in an index, not filter row by row
};

TEST_F(QueryPlans, use_the_indexes_of_open_transactions) {
  const std::vector<Expected> expectations{
      {sql::kCreateBatch, {"uq_managed_tx_signer_request_id", "idx_managed_tx_waiting", "idx_managed_tx_in_flight"}},
      {sql::kPromote, {"idx_managed_tx_waiting", "idx_managed_tx_in_flight", "managed_tx_pkey"}},
      {sql::kLockRows, {"managed_tx_pkey"}},
      {sql::kApplySteps, {"managed_tx_pkey", "tx_attempt_pkey"}},
      {sql::kWaiting, {"idx_managed_tx_waiting", "idx_managed_tx_in_flight"}},
      {sql::kClaimAttempts, {"tx_attempt_pkey", "managed_tx_pkey"}},
      {sql::kClaimResubmits, {"managed_tx_pkey", "tx_attempt_pkey"}},
      {sql::kNoteChecks, {"managed_tx_pkey"}},
      {sql::kDueSubmits,
       {"idx_managed_tx_due_submit", "idx_managed_tx_in_flight", "tx_attempt_pkey"},
       {"next_resubmit_at <= statement_timestamp()"}},
      {sql::kDueResubmits, {"idx_managed_tx_due_resubmit"}, {"next_resubmit_at <= statement_timestamp()"}},
      {sql::kMatchAttempts, {"tx_attempt_pkey", "managed_tx_pkey"}},
      {sql::kStaleReceipts, {"idx_managed_tx_in_flight"}},
      {sql::kMinedBetween, {"idx_managed_tx_mined"}, {"receipt_block >= $3", "receipt_block <= $6"}},
      {sql::kOpenHeads, {"idx_managed_tx_in_flight"}},
      {sql::kMakeDue, {"idx_managed_tx_in_flight"}},
      {sql::kOrphans, {"idx_managed_tx_signer_state_resubmit"}},
      {sql::kIdle, {"idx_managed_tx_signer_state_resubmit"}},
      {sql::kFindTx, {"managed_tx_pkey", "idx_managed_tx_in_flight"}},
      {sql::kFindRequests, {"uq_managed_tx_signer_request_id"}},
      {sql::kList, {"managed_tx_pkey"}},
      {sql::kListOfSigner, {"idx_managed_tx_signer_tx_id"}},
      {sql::kListOpen, {"idx_managed_tx_signer_state_resubmit", "managed_tx_pkey"}},
      {sql::kListTrouble, {"idx_managed_tx_trouble"}},
      {sql::kListAttempts, {"tx_attempt_tx_id_attempt_key"}},
      {sql::kListSigners, {"idx_managed_tx_signer_state_resubmit"}},
      {sql::kBacklogs, {"idx_managed_tx_signer_state_resubmit"}},
  };
  for (const auto& [statement, indexes, conditions] : expectations) {
    SCOPED_TRACE(std::string(statement.name));
    const auto plan = plan_of(statement);
    EXPECT_FALSE(plan.scans.contains("managed_tx")) << plan.text;
    EXPECT_FALSE(plan.scans.contains("tx_attempt")) << plan.text;
    for (const auto& index : indexes) EXPECT_TRUE(plan.indexes.contains(index)) << index << "\n" << plan.text;
    for (const auto& condition : conditions) {
      EXPECT_TRUE(plan.conditions.contains(condition)) << condition << "\n" << plan.text;
    }
  }
}

// Plans are cached, and the first ones are made before there are statistics.
TEST_F(QueryPlans, are_right_from_the_start) {
  const std::vector<Expected> expectations{
      {sql::kCreateBatch, {"uq_managed_tx_signer_request_id", "idx_managed_tx_waiting", "managed_tx_pkey"}, {}},
      {sql::kLockRows, {"managed_tx_pkey"}, {}},
      {sql::kApplySteps, {"managed_tx_pkey", "tx_attempt_pkey"}, {}},
      {sql::kMatchAttempts, {"tx_attempt_pkey", "managed_tx_pkey"}, {}},
      {sql::kOpenHeads, {"idx_managed_tx_in_flight"}, {}},
      {sql::kWaiting, {"idx_managed_tx_waiting", "idx_managed_tx_in_flight"}, {}},
      {sql::kDueSubmits, {"idx_managed_tx_due_submit", "idx_managed_tx_in_flight", "tx_attempt_pkey"}, {}},
      {sql::kClaimAttempts, {"tx_attempt_pkey", "managed_tx_pkey"}, {}},
  };
  // An empty database; an empty database with statistics; and one in which all transactions have ended.
  const std::vector<std::string> beginnings{"", "ANALYZE", std::string(kAllEnded)};
  for (const auto& beginning : beginnings) {
    const test::TestDatabase quiet(test::Template::kMigrated);
    if (!beginning.empty()) quiet.exec(beginning);
    interleaving::Session session(quiet.dsn(), "planner");
    session.must("SET plan_cache_mode = force_generic_plan");
    session.must("SET enable_seqscan = off");  // as Connector does
    for (const auto& [statement, indexes, conditions] : expectations) {
      SCOPED_TRACE(fmt::format("{} after {}", statement.name, beginning.substr(0, 20)));
      const auto plan = plan_of(statement, &session);
      for (const auto& index : indexes) EXPECT_TRUE(plan.indexes.contains(index)) << index << "\n" << plan.text;
      EXPECT_FALSE(plan.indexes.contains("idx_managed_tx_signer_tx_id")) << plan.text;
    }
  }
}

}  // namespace
}  // namespace fencepost::tx
