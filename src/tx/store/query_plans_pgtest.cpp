// Checks the plans of the statements. A plan that reads a whole table would otherwise be noticed only in production.
//
// Plans are cached, and the first ones are made before there is data. So each statement must have a good plan whatever
// the planner believes about the tables: that they are empty, that nothing is open, or that there is much of
// everything.
#include "tests/support/query_plan.hpp"
#include "tx/store/ability_store.hpp"
#include "tx/store/attempt_store.hpp"
#include "tx/store/create_store.hpp"
#include "tx/store/cursor_reset_store.hpp"
#include "tx/store/cursor_store.hpp"
#include "tx/store/fence.hpp"
#include "tx/store/gap_store.hpp"
#include "tx/store/give_up_store.hpp"
#include "tx/store/mined_after_end_store.hpp"
#include "tx/store/protocol_test_support.hpp"
#include "tx/store/reject_store.hpp"
#include "tx/store/reopen_store.hpp"
#include "tx/store/reorg_store.hpp"
#include "tx/store/step_store.hpp"
#include "tx/store/tx_store.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {
namespace {

// 200 signers with 1,000 ended transactions, 20 open ones and 5 that wait; node-a leads 50 of them.
constexpr std::string_view kLarge = R"(
  INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at)
  SELECT 31337, '0x' || lpad(to_hex(s), 40, '0'), CASE WHEN s < 50 THEN 'node-a' WHEN s < 100 THEN 'node-b' ELSE '' END,
         1, CASE WHEN s < 100 THEN timestamptz 'infinity' ELSE timestamptz '-infinity' END
    FROM generate_series(0, 199) AS s;
  INSERT INTO signer_nonce_cursor (chain_id, signer, next_nonce, next_creation, first_waiting, first_unmined)
  SELECT chain_id, signer, 1020, 1025, 1020, 1000 FROM signer_lease;
  INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, nonce, payload, payload_hash, gas_limit)
  SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i * 200 + s), 12, '0'))::uuid, 31337,
         '0x' || lpad(to_hex(s), 40, '0'), 'r' || i, i, CASE WHEN i < 1020 THEN i END,
         '{"to":"0x0000000000000000000000000000000000000001","value":"1"}', '\x00', 21000
    FROM generate_series(0, 1024) AS i, generate_series(0, 199) AS s;
  INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, tx_hash, next_resubmit_at, fencing_token)
  SELECT chain_id, signer, nonce, tx_id,
         CASE WHEN nonce < 1002 THEN 'STUCK' WHEN nonce < 1015 THEN 'TRACKING' ELSE 'ALLOCATED' END,
         CASE WHEN nonce < 1015 THEN '0x' || lpad(replace(tx_id::text, '-', ''), 64, '0') END,
         clock_timestamp() + (nonce - 1018) * interval '1 s', 1
    FROM managed_tx
   WHERE nonce >= 1000;
  INSERT INTO tx_ended (tx_id, chain_id, state, retry_count, tx_hash, receipt_block, receipt_hash)
  SELECT tx_id, chain_id, CASE WHEN nonce < 990 THEN 'CONFIRMED' ELSE 'FAILED_FINAL' END, 0,
         '0x' || lpad(replace(tx_id::text, '-', ''), 64, '0'), nonce, '0x'
    FROM managed_tx
   WHERE nonce < 1000;
  INSERT INTO tx_receipt (tx_id, chain_id, receipt_block, receipt)
  SELECT tx_id, chain_id, receipt_block, '{}' FROM tx_ended;
  INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fencing_token)
  SELECT chain_id, tx_hash, tx_id, 1, 'original', '\x0102', 1
    FROM (SELECT chain_id, tx_hash, tx_id FROM tx_open UNION ALL SELECT chain_id, tx_hash, tx_id FROM tx_ended) AS t
   WHERE tx_hash IS NOT NULL;
  ANALYZE)";

// 100 signers whose transactions have all ended. VACUUM notes that nothing is left in tx_open, whose pages remain.
constexpr std::string_view kAllEnded = R"(
  INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at)
  SELECT 31337, '0x' || lpad(to_hex(s), 40, '0'), 'node-a', 1, timestamptz 'infinity' FROM generate_series(0, 99) AS s;
  INSERT INTO signer_nonce_cursor (chain_id, signer, next_nonce, next_creation, first_waiting, first_unmined)
  SELECT chain_id, signer, 100, 100, 100, 100 FROM signer_lease;
  INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, nonce, payload, payload_hash, gas_limit)
  SELECT gen_random_uuid(), 31337, signer, 'r' || i, i, i, '{}', '', 21000 FROM signer_lease, generate_series(0, 99) AS i;
  INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, fencing_token)
  SELECT chain_id, signer, nonce, tx_id, 'TRACKING', 1 FROM managed_tx;
  DELETE FROM tx_open WHERE nonce < 99;
  INSERT INTO tx_ended (tx_id, chain_id, state, retry_count, tx_hash, receipt_block, receipt_hash)
  SELECT tx_id, chain_id, 'CONFIRMED', 0, '0x' || replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''),
         nonce, '0x'
    FROM managed_tx;
  INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fencing_token)
  SELECT chain_id, tx_hash, tx_id, 1, 'original', '\x0102', 1 FROM tx_ended;
  DELETE FROM tx_open)";

const std::string kByOwner = "idx_signer_lease_owner_node";

struct Expected {
  const pg::Statement& statement;
  std::vector<std::string> indexes;  // the plan must use each of them
  std::string whole;                 // what it may read as a whole, if anything
  bool list = false;                 // for people: its plan may be poor until the tables have statistics
};

const std::vector<Expected> kExpected{
    {sql::kLockRows, {"tx_open_tx_id_key"}, ""},
    {sql::kCreateBatch, {"uq_managed_tx_signer_request_id", "tx_open_pkey"}, ""},
    {sql::kPromote, {"idx_managed_tx_waiting", "tx_open_pkey"}, ""},
    {sql::kWaiting, {"tx_open_pkey"}, ""},
    {sql::kApplySteps, {"tx_open_tx_id_key", "tx_attempt_pkey"}, ""},
    {sql::kEndSteps, {"tx_open_tx_id_key"}, ""},
    {sql::kReject, {"tx_open_tx_id_key", "managed_tx_pkey", "signer_nonce_cursor_pkey"}, ""},
    {sql::kFindGaps, {"signer_nonce_cursor_pkey", "tx_open_pkey", "uq_managed_tx_signer_nonce", "tx_ended_pkey"}, ""},
    {sql::kNoteGaps, {"signer_nonce_cursor_pkey", "tx_open_pkey"}, ""},
    {sql::kFindUndone, {"uq_managed_tx_signer_nonce", "tx_ended_pkey"}, ""},
    {sql::kLockEnded, {"tx_ended_pkey", "managed_tx_pkey"}, ""},
    {sql::kReopen, {"tx_ended_pkey", "managed_tx_pkey", "tx_attempt_tx_id_attempt_key", "tx_open_pkey"}, ""},
    {sql::kGiveUp, {"tx_open_tx_id_key", "tx_attempt_tx_id_attempt_key"}, ""},
    {sql::kCancelWaiting, {"managed_tx_pkey", "idx_managed_tx_waiting", "signer_nonce_cursor_pkey"}, ""},
    {sql::kNonceHolders, {"uq_managed_tx_signer_nonce", "tx_open_tx_id_key", "tx_ended_pkey"}, ""},
    {sql::kNonceAttempts, {"tx_attempt_tx_id_attempt_key"}, ""},
    {sql::kLockHolders, {"tx_open_pkey"}, ""},
    {sql::kLockEndedHolders, {"uq_managed_tx_signer_nonce", "tx_ended_pkey"}, ""},
    {sql::kResetCursor, {"uq_managed_tx_signer_nonce", "tx_open_tx_id_key", "tx_ended_pkey"}, ""},
    {sql::kClaimAttempts, {"tx_open_tx_id_key", "tx_attempt_pkey"}, ""},
    {sql::kClaimResubmits, {"tx_open_tx_id_key", "tx_attempt_pkey"}, ""},
    {sql::kNoteChecks, {"tx_open_tx_id_key"}, ""},
    {sql::kDueSubmits, {kByOwner, "tx_open_pkey", "managed_tx_pkey", "tx_attempt_pkey"}, ""},
    {sql::kDueSubmitsOf, {"signer_lease_pkey", "tx_open_pkey", "managed_tx_pkey", "tx_attempt_pkey"}, ""},
    {sql::kDueResubmits, {kByOwner, "tx_open_pkey"}, ""},
    {sql::kMatchAttempts, {"tx_attempt_pkey", "tx_open_tx_id_key"}, ""},
    {sql::kFindMinedAfterEnd, {"tx_attempt_pkey", "tx_ended_pkey", "managed_tx_pkey"}, ""},
    {sql::kReportMinedAfterEnd, {"tx_attempt_pkey", "tx_ended_pkey", "managed_tx_pkey"}, ""},
    {sql::kEndedAbove, {"idx_tx_ended_receipt_block"}, ""},
    {sql::kEndedBelow, {"idx_tx_receipt_block", "tx_ended_pkey"}, ""},
    {sql::kStaleReceipts, {kByOwner, "tx_open_pkey", "tx_attempt_tx_id_attempt_key"}, ""},
    {sql::kMinedBetween, {"idx_tx_receipt_block", "tx_open_tx_id_key", "tx_attempt_pkey", "managed_tx_pkey"}, ""},
    {sql::kMinedOpen, {"tx_open_pkey", "tx_attempt_pkey", "managed_tx_pkey"}, ""},
    {sql::kOpenHeads, {kByOwner, "tx_open_pkey", "uq_managed_tx_signer_nonce"}, ""},
    {sql::kMakeDue, {"tx_open_pkey"}, ""},
    {sql::kMakeFailedDue, {kByOwner, "tx_open_pkey", "tx_open_tx_id_key"}, ""},
    {sql::kOrphans, {"tx_open_pkey"}, ""},
    {sql::kIdle, {"tx_open_pkey"}, ""},
    {sql::kKeylessOrphans, {"tx_open_pkey"}, ""},
    {sql::kKeyElsewhere, {}, ""},
    {sql::kKeyHolder, {}, ""},
    {sql::kChainHolder, {}, ""},
    {sql::kKnownSigner, {}, ""},
    {sql::kUnledWork, {"tx_open_pkey", "signer_nonce_cursor_pkey"}, ""},
    {sql::kFindTx, {"managed_tx_pkey", "tx_open_tx_id_key", "tx_ended_pkey", "tx_receipt_pkey", "tx_open_pkey"}, ""},
    {sql::kFindRequests, {"uq_managed_tx_signer_request_id", "tx_open_tx_id_key", "tx_ended_pkey"}, ""},
    {sql::kFindHashes, {"managed_tx_pkey", "tx_open_tx_id_key", "tx_ended_pkey"}, ""},
    {sql::kFindAttempt, {"tx_attempt_pkey", "managed_tx_pkey", "tx_open_tx_id_key", "tx_ended_pkey"}, ""},
    {sql::kFindNextNonce, {"signer_nonce_cursor_pkey"}, ""},
    {sql::kList, {"managed_tx_pkey", "tx_open_tx_id_key", "tx_ended_pkey"}, "managed_tx by managed_tx_pkey", true},
    {sql::kListOfSigner, {"idx_managed_tx_signer_tx_id", "tx_open_tx_id_key", "tx_ended_pkey"}, "", true},
    {sql::kListWaiting, {"idx_managed_tx_waiting", "managed_tx_pkey"}, "managed_tx by idx_managed_tx_waiting", true},
    {sql::kListConfirmed, {"tx_ended_pkey", "managed_tx_pkey"}, "tx_ended by tx_ended_pkey", true},
    {sql::kListFailed, {"idx_tx_ended_failed", "managed_tx_pkey"}, "tx_ended by idx_tx_ended_failed", true},
    {sql::kBlockers, {"signer_nonce_cursor_pkey", "tx_open_pkey", "uq_managed_tx_signer_nonce"}, ""},
    {sql::kListAttempts, {"tx_attempt_tx_id_attempt_key"}, ""},
    {sql::kListSigners,
     {"tx_open_pkey", "idx_managed_tx_waiting", "managed_tx_pkey"},
     "signer_nonce_cursor by signer_nonce_cursor_pkey"},
    {sql::kBacklogs, {kByOwner, "tx_open_pkey", "idx_managed_tx_waiting", "managed_tx_pkey"}, ""},
};

struct Beginning {
  std::string name;
  std::vector<std::string> fill;
  bool has_data = false;
};

void PrintTo(const Beginning& beginning, std::ostream* out) {
  *out << beginning.name;
}

class QueryPlans : public ::testing::TestWithParam<Beginning> {};

TEST_P(QueryPlans, read_by_key) {
  const test::TestDatabase db(test::Template::kMigrated);
  for (const auto& sql : GetParam().fill) db.exec(sql);
  interleaving::Session session(db.dsn(), "planner");
  session.must("SET plan_cache_mode = force_generic_plan");
  session.must("SET enable_seqscan = off");  // as Connector does
  for (const auto& [statement, indexes, may_read, list] : kExpected) {
    if (list && !GetParam().has_data) continue;
    SCOPED_TRACE(std::string(statement.name));
    const auto plan = test::plan_of(statement, session);
    for (const auto& table : plan.whole) {
      const bool ours =
          table.starts_with("tx_") || table.starts_with("managed_tx") || table.starts_with("signer_nonce");
      EXPECT_TRUE(!ours || table == may_read) << "reads all of " << table << "\n" << plan.text;
    }
    // Only for statements that begin with the signers of a node.
    const bool by_owner = std::ranges::find(indexes, kByOwner) != indexes.end();
    EXPECT_EQ(plan.indexes.contains(kByOwner), by_owner) << plan.text;
    for (const auto& index : indexes) EXPECT_TRUE(plan.indexes.contains(index)) << index << "\n" << plan.text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    on, QueryPlans,
    ::testing::Values(Beginning{"empty_tables", {}}, Beginning{"tables_analyzed_while_empty", {"ANALYZE"}},
                      Beginning{"tables_where_all_has_ended", {std::string(kAllEnded), "VACUUM tx_open", "ANALYZE"}},
                      Beginning{"large_tables", {std::string(kLarge)}, true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fencepost::tx
