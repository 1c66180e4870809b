// Migration 0010 while a node of the version before is running: the migration waits for the node's open transactions,
// and afterwards the node can change nothing.
#include <future>

#include "tests/support/eventually.hpp"
#include "tx/store/lease_store.hpp"
#include "tx/store/tx_migration_test_support.hpp"

namespace fencepost::tx {
namespace {

// The writes of the version before, shortened to one signer and one transaction. Each has the tables, the locks, the
// guards and the columns of the original, and returns one row for each row that it locks or changes.
// Fenced ones have $1 node, $2 chain, $3 signer, $4 token, $5 transaction.
constexpr auto kLockLease = R"(
  SELECT l.signer
    FROM signer_lease AS l
   WHERE l.chain_id = $1 AND l.signer = $2
     FOR KEY SHARE OF l)";
constexpr auto kLockCursor = R"(
  SELECT c.signer
    FROM signer_nonce_cursor AS c
    JOIN signer_lease AS l USING (chain_id, signer)
   WHERE l.owner_node = $1 AND l.chain_id = $2 AND l.signer = $3 AND l.fencing_token = $4
     FOR UPDATE OF c)";
constexpr auto kLockTransaction = R"(
  SELECT t.tx_id
    FROM managed_tx AS t
    JOIN signer_lease AS l USING (chain_id, signer)
   WHERE l.owner_node = $1 AND l.chain_id = $2 AND l.signer = $3 AND l.fencing_token = $4 AND t.tx_id = $5::uuid
     FOR NO KEY UPDATE OF t)";

// Whether the old node holds the lease, under the names that the original statements use.
#define FENCEPOST_OLD_HELD                                                                                 \
  "(SELECT true FROM signer_lease AS l WHERE l.chain_id = $2 AND l.signer = $3 AND l.owner_node = $1 AND " \
  "l.fencing_token = $4 AND l.expires_at > clock_timestamp() LIMIT 1)"

constexpr auto kStep = R"(
  WITH applied AS (
    UPDATE managed_tx AS t
       SET state = 'STUCK',
           sub_state = 'no_receipt',
           error_message = 'by the old node',
           next_resubmit_at = clock_timestamp() + interval '1 h',
           fencing_token = $4,
           updated_at = clock_timestamp()
     WHERE t.tx_id = $5::uuid AND t.state = 'TRACKING' AND )" FENCEPOST_OLD_HELD R"(
    RETURNING t.tx_id
  ),
  written AS (
    INSERT INTO step_history (subject_id, from_state, to_state, sub_state, node, fencing_token, why)
    SELECT tx_id, 'TRACKING', 'STUCK', 'no_receipt', $1, $4, 'old step' FROM applied
  ),
  told AS (
    INSERT INTO outbox_event (type, subject, data) SELECT 'TxStuck', 'tx/' || tx_id, '{}' FROM applied
  )
  SELECT tx_id FROM applied)";

constexpr auto kCreate = R"(
  WITH held AS MATERIALIZED (
    SELECT c.chain_id, c.signer, c.next_creation
      FROM signer_nonce_cursor AS c
     WHERE c.chain_id = $2 AND c.signer = $3 AND NOT c.needs_reconcile AND )" FENCEPOST_OLD_HELD R"(
  ),
  inserted AS (
    INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, payload, payload_hash, gas_limit, state,
                            fencing_token)
    SELECT '01900000-0000-7000-8000-00000000beef', chain_id, signer, 'by the old node', next_creation, '{}', '', 21000,
           'CREATED', $4
      FROM held
    RETURNING tx_id
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_creation = c.next_creation + 1, fencing_token = $4, updated_at = clock_timestamp()
      FROM held
     WHERE c.chain_id = held.chain_id AND c.signer = held.signer
  ),
  written AS (
    INSERT INTO step_history (subject_id, to_state, node, fencing_token, why)
    SELECT tx_id, 'CREATED', $1, $4, 'accepted' FROM inserted
  )
  SELECT tx_id FROM inserted)";

constexpr auto kClaim = R"(
  WITH claimed AS (
    UPDATE managed_tx AS t
       SET tx_hash = '0x' || repeat('c', 64),
           first_submitted_at = coalesce(t.first_submitted_at, clock_timestamp()),
           last_submit_at = clock_timestamp(),
           next_resubmit_at = clock_timestamp() + interval '1 h',
           fencing_token = $4,
           updated_at = clock_timestamp()
     WHERE t.tx_id = $5::uuid AND t.state = 'TRACKING' AND t.receipt_block IS NULL AND )" FENCEPOST_OLD_HELD R"(
    RETURNING t.*
  ),
  stored AS (
    INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fencing_token)
    SELECT chain_id, tx_hash, tx_id, 7, 'original', '\x05', $4 FROM claimed
    RETURNING tx_id
  )
  SELECT tx_id FROM stored)";

constexpr auto kRepeat = R"(
    UPDATE managed_tx AS t
       SET last_submit_at = clock_timestamp(),
           next_resubmit_at = clock_timestamp() + interval '1 h',
           fencing_token = l.fencing_token,
           updated_at = clock_timestamp()
      FROM signer_lease AS l
     WHERE l.chain_id = $2 AND l.signer = $3 AND l.fencing_token = $4 AND l.owner_node = $1
       AND l.expires_at > clock_timestamp()
       AND t.tx_id = $5::uuid
       AND t.state IN ('TRACKING', 'STUCK')
       AND t.receipt_block IS NULL
    RETURNING t.tx_id)";

constexpr auto kRenew = R"(
  WITH mine AS MATERIALIZED (
    SELECT l.chain_id, l.signer
      FROM signer_lease AS l
     WHERE l.owner_node = $1 AND l.chain_id = $2 AND l.signer = $3 AND l.fencing_token = $4
       FOR NO KEY UPDATE OF l SKIP LOCKED
  )
  UPDATE signer_lease AS l
     SET expires_at = clock_timestamp() + interval '2 h',
         updated_at = clock_timestamp()
    FROM mine
   WHERE l.chain_id = mine.chain_id AND l.signer = mine.signer
  RETURNING l.signer)";

constexpr auto kAcquire = R"(
  WITH free AS MATERIALIZED (
    SELECT chain_id, signer, owner_node = $1 AS mine
      FROM signer_lease
     WHERE chain_id = $2 AND signer = $3 AND (owner_node = $1 OR expires_at <= clock_timestamp())
       FOR UPDATE
  )
  UPDATE signer_lease AS l
     SET owner_node = $1,
         fencing_token = l.fencing_token + CASE WHEN free.mine THEN 0 ELSE 1 END,
         expires_at = clock_timestamp() + interval '1 h',
         updated_at = clock_timestamp()
    FROM free
   WHERE l.chain_id = free.chain_id AND l.signer = free.signer
  RETURNING l.signer)";

constexpr auto kRelease = R"(
  UPDATE signer_lease AS l
     SET owner_node = '', expires_at = '-infinity', updated_at = clock_timestamp()
   WHERE l.owner_node = $1 AND l.chain_id = $2 AND l.signer = $3 AND l.fencing_token = $4
  RETURNING l.signer)";

constexpr auto kMakeDue = R"(
  WITH left_open AS MATERIALIZED (
    SELECT tx_id
      FROM managed_tx
     WHERE chain_id = $1 AND signer = $2 AND state IN ('ALLOCATED', 'TRACKING', 'STUCK') AND receipt_block IS NULL
       FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE managed_tx AS t
     SET next_resubmit_at = clock_timestamp(), last_receipt_check = NULL
    FROM left_open
   WHERE t.tx_id = left_open.tx_id
  RETURNING t.tx_id)";

constexpr auto kNoteReceiptChecks = R"(
  WITH noted AS MATERIALIZED (
    SELECT tx_id FROM managed_tx WHERE tx_id = $1::uuid AND receipt_block IS NULL FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE managed_tx AS t
     SET last_receipt_check = clock_timestamp()
    FROM noted
   WHERE t.tx_id = noted.tx_id
  RETURNING t.tx_id)";

// Writes the cursor only, and none of its columns is gone: only the fence keeps the old node from it.
constexpr auto kAcceptNonce = R"(
  UPDATE signer_nonce_cursor AS c
     SET next_nonce = greatest(c.next_nonce, 99), needs_reconcile = false, chain_nonce = 99, fencing_token = $4,
         updated_at = clock_timestamp()
   WHERE c.chain_id = $2 AND c.signer = $3 AND )" FENCEPOST_OLD_HELD R"(
  RETURNING c.signer)";

constexpr auto kEndedViolated = R"(
  UPDATE managed_tx
     SET sub_state = 'finality_violated', updated_at = clock_timestamp()
   WHERE tx_id = $1::uuid AND state IN ('CONFIRMED', 'FAILED_FINAL')
  RETURNING tx_id)";

class OldNode : public TxMigration {
 protected:
  OldNode() { fill(); }

  struct Call {
    std::string name;
    std::string_view sql;
    pg::Params params;
  };

  static pg::Params of_signer() { return pg::Params::of("old", kMixed.chain_id, kMixed.signer, kOldToken); }
  pg::Params of_transaction(const std::string& name = "sent") const { return of_signer().add(ids.at(name)); }

  // The statements of fenced writes, in order. The first one does not ask who holds the lease.
  static Call lock_lease() { return {"lock lease", kLockLease, pg::Params::of(kMixed.chain_id, kMixed.signer)}; }
  std::vector<Call> step() const {
    return {lock_lease(), {"lock transaction", kLockTransaction, of_transaction()}, {"step", kStep, of_transaction()}};
  }
  std::vector<Call> claim() const {
    return {
        lock_lease(), {"lock transaction", kLockTransaction, of_transaction()}, {"claim", kClaim, of_transaction()}};
  }
  static std::vector<Call> create() {
    return {lock_lease(), {"lock cursor", kLockCursor, of_signer()}, {"create", kCreate, of_signer()}};
  }

  // Every statement with which the old node changes something.
  std::vector<Call> writes() const {
    return {step().back(),
            claim().back(),
            create().back(),
            {"repeat", kRepeat, of_transaction()},
            {"renew", kRenew, of_signer()},
            {"acquire", kAcquire, pg::Params::of("old", kMixed.chain_id, kMixed.signer)},
            {"acquire a free lease", kAcquire, pg::Params::of("old", kIdle.chain_id, kIdle.signer)},
            {"release", kRelease, of_signer()},
            {"make due", kMakeDue, pg::Params::of(kMixed.chain_id, kMixed.signer)},
            {"note receipt checks", kNoteReceiptChecks, pg::Params::of(ids.at("sent"))},
            {"report a violation", kEndedViolated, pg::Params::of(ids.at("confirmed"))}};
  }

  // What a statement did: the number of rows that it returned, or that it was refused.
  static std::string outcome(Session& session, const Call& call) {
    try {
      const auto answer = session.ask(call.sql, call.params);
      return answer.ok() ? std::to_string(answer.rows.size()) : "refused";
    } catch (const Exception&) {
      return "refused";  // it could not even be prepared
    }
  }

  std::string everything() {
    std::string out;
    for (const auto* table : {"signer_lease", "signer_nonce_cursor", "managed_tx", "tx_open", "tx_ended", "tx_receipt",
                              "tx_attempt", "event", "operator_action"}) {
      out += text(fmt::format("SELECT coalesce(string_agg(x::text, '|' ORDER BY x::text), '') FROM {} AS x", table));
    }
    return out;
  }

  // Starts the migration, waits until it is blocked by `session`, runs `meanwhile` and then waits for its end.
  template <class Body>
  void migrate_while_open(Session& session, Body meanwhile) {
    auto migration = std::async(std::launch::async, [this] { test::migrate_to(db.dsn(), kAfter); });
    const bool waits = test::eventually([&] {
      return admin.value<bool>("SELECT count(*) > 0 FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid))",
                               pg::Params::of(std::int64_t{session.pid()}));
    });
    EXPECT_TRUE(waits) << "the migration did not wait for the old node";
    EXPECT_NE(migration.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    meanwhile();
    migration.get();
    admin = Session(db.dsn(), "admin");
  }

  std::string version() { return text("SELECT max(version)::text FROM schema_migration"); }

  Session old{db.dsn(), "old"};
};

TEST_F(OldNode, a_step_that_is_not_committed_is_waited_for_and_carried_over) {
  old.must("BEGIN");
  for (const auto& call : step()) ASSERT_EQ(outcome(old, call), "1") << call.name;
  migrate_while_open(old, [&] {
    EXPECT_EQ(version(), "8");
    old.must("COMMIT");
  });
  EXPECT_EQ(text(fmt::format("SELECT concat_ws('/', state, sub_state, error_message, next_resubmit_at > now()) FROM "
                             "tx_open WHERE tx_id = '{}'",
                             ids.at("sent").to_string())),
            "STUCK/no_receipt/by the old node/t");
  EXPECT_EQ(text("SELECT count(*) FROM history WHERE why = 'old step'"), "1");
  EXPECT_EQ(text("SELECT count(*) FROM outbox WHERE type = 'TxStuck'"), "1");
}

TEST_F(OldNode, a_create_that_is_not_committed_is_waited_for_and_carried_over) {
  old.must("BEGIN");
  for (const auto& call : create()) ASSERT_EQ(outcome(old, call), "1") << call.name;
  migrate_while_open(old, [&] { old.must("COMMIT"); });
  EXPECT_EQ(text("SELECT state || '/' || creation_seq FROM tx_view WHERE request_id = 'by the old node'"),
            "CREATED/19");
  EXPECT_EQ(
      text(fmt::format("SELECT next_creation || '/' || first_waiting FROM signer_nonce_cursor WHERE chain_id = {} "
                       "AND signer = '{}'",
                       kMixed.chain_id, kMixed.signer)),
      "20/16");
}

// A renewal holds only the lease.
TEST_F(OldNode, a_renewal_that_is_not_committed_does_not_keep_the_lease) {
  old.must("BEGIN");
  ASSERT_EQ(outcome(old, {"renew", kRenew, of_signer()}), "1");
  migrate_while_open(old, [&] { old.must("COMMIT"); });
  EXPECT_EQ(text(fmt::format("SELECT concat_ws('/', owner_node, fencing_token, expires_at) FROM signer_lease WHERE "
                             "chain_id = {} AND signer = '{}'",
                             kMixed.chain_id, kMixed.signer)),
            "/8/-infinity");
}

// The migrations, which are one transaction, find the fenced write after this many of its statements.
class OldClaim : public OldNode, public ::testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(begun, OldClaim, ::testing::Values(1, 2, 3));

TEST_P(OldClaim, is_finished_and_carried_over) {
  const auto calls = claim();
  old.must("BEGIN");
  for (std::size_t i = 0; i < GetParam(); ++i) ASSERT_EQ(outcome(old, calls[i]), "1") << calls[i].name;
  migrate_while_open(old, [&] {
    EXPECT_EQ(version(), "8");
    for (std::size_t i = GetParam(); i < calls.size(); ++i) EXPECT_EQ(outcome(old, calls[i]), "1") << calls[i].name;
    old.must("COMMIT");
  });
  EXPECT_EQ(text(fmt::format("SELECT tx_hash FROM tx_open WHERE tx_id = '{}'", ids.at("sent").to_string())),
            "0x" + std::string(64, 'c'));
  EXPECT_EQ(text("SELECT count(*) FROM tx_attempt WHERE raw = '\\x05'"), "1");
}

class OldStep : public OldNode, public ::testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(begun, OldStep, ::testing::Values(1, 2));

// What it writes next may be locked by the migrations: they give way.
TEST_P(OldStep, that_has_not_written_yet_is_finished_and_carried_over) {
  const auto calls = step();
  old.must("BEGIN");
  for (std::size_t i = 0; i < GetParam(); ++i) ASSERT_EQ(outcome(old, calls[i]), "1") << calls[i].name;
  migrate_while_open(old, [&] {
    EXPECT_EQ(version(), "8");
    for (std::size_t i = GetParam(); i < calls.size(); ++i) EXPECT_EQ(outcome(old, calls[i]), "1") << calls[i].name;
    old.must("COMMIT");
  });
  EXPECT_EQ(text(fmt::format("SELECT concat_ws('/', state, sub_state, error_message) FROM tx_open WHERE tx_id = '{}'",
                             ids.at("sent").to_string())),
            "STUCK/no_receipt/by the old node");
  EXPECT_EQ(text("SELECT count(*) FROM history WHERE why = 'old step'"), "1");
}

// With the plans of a session that was there before, and with those of a new one.
TEST_F(OldNode, can_change_nothing_afterwards) {
  for (const auto& call : writes()) {
    old.must("BEGIN");
    const auto changed = outcome(old, call);  // before the migration each of them works
    EXPECT_TRUE(changed != "refused" && changed != "0") << call.name << ": " << changed;
    old.must("ROLLBACK");
  }
  ASSERT_EQ(outcome(old, {"accept nonce", kAcceptNonce, of_signer()}), "1");
  migrate();
  Session reconnected(db.dsn(), "old");
  const auto tries = [&](const std::string& when) {
    const auto before = everything();
    for (auto* session : {&old, &reconnected}) {
      for (const auto& call : writes()) EXPECT_EQ(outcome(*session, call), "refused") << call.name << " " << when;
      for (const auto& calls : {step(), claim(), create()}) {
        session->must("BEGIN");
        EXPECT_NE(outcome(*session, calls[1]), "1") << calls[1].name << " " << when;
        session->must("ROLLBACK");
      }
    }
    // None of its columns is gone: only the fence keeps the old node from the cursor.
    EXPECT_EQ(outcome(reconnected, {"accept nonce", kAcceptNonce, of_signer()}), "0") << when;
    EXPECT_EQ(everything(), before) << when;
  };
  tries("while the leases are free");
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto got = co_await acquire_leases(pool, "new", kChainA, {kMixed.signer}, LeaseTimes{});
    EXPECT_EQ(got.size(), 1u);
  });
  tries("while a new node leads");
  admin.must("UPDATE signer_lease SET expires_at = clock_timestamp() - interval '1 h'");
  tries("when the lease of the new node has expired");
}

}  // namespace
}  // namespace fencepost::tx
