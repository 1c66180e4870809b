// Tests that the writes of operators pass the same fence as those of the workers.
#include "tx/store/cursor_reset_store.hpp"
#include "tx/store/operator_store.hpp"
#include "tx/store/protocol_test_support.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;

class OperatorStore : public ProtocolTest {
 protected:
  // The signer's first transactions, with nonces 0 and 1. Nonce 2 is below the cursor, and no transaction has it.
  std::vector<Uuid> create_two() {
    const std::vector<NewTx> items{new_tx(lease.key), new_tx(lease.key)};
    test::with_pool(db.dsn(), {},
                    [&](pg::Pool& pool) -> awaitable<> { co_await create_batch(pool, "node-a", {{lease, 0}}, items); });
    admin.must("UPDATE signer_nonce_cursor SET next_nonce = 3");
    return {items[0].tx_id, items[1].tx_id};
  }

  OperatorAct act(std::optional<Uuid> tx_id) const {
    return {.lease = lease, .tx_id = tx_id, .action = "by_hand", .reason = "test", .actor = "me"};
  }
  Claim cancel() const {
    return {.lease = lease,
            .tx_id = tx[0],
            .tx_hash = hash_of(2),
            .kind = AttemptKind::kCancel,
            .raw = Bytes{1},
            .fees = R"({"gasPrice":"1"})"};
  }
  GapFill fill() {
    return {
        .tx_id = ids.next(), .nonce = 2, .payload = "{}", .payload_hash = std::string(32, 'x'), .gas_limit = 21'000};
  }

  // Everything that an operator's write may change.
  std::string everything() {
    return admin.value<std::string>(R"(
      SELECT concat_ws(E'\n', (SELECT jsonb_agg(t ORDER BY nonce) FROM managed_tx AS t)::text,
                              (SELECT jsonb_agg(t ORDER BY nonce) FROM tx_open AS t)::text,
                              (SELECT jsonb_agg(a) FROM tx_attempt AS a)::text,
                              (SELECT jsonb_agg(c) FROM signer_nonce_cursor AS c)::text,
                              (SELECT count(*) FROM event)::text,
                              (SELECT count(*) FROM operator_action)::text))");
  }

  SignerLease lease = signer_of("node-a");
  std::vector<Uuid> tx = create_two();
  Session stranger{db.dsn(), "psql"};
};

struct Act {
  std::string name;
  std::string_view locks;  // what the other session locks
  std::function<awaitable<StepOutcome>(pg::Pool&)> run;
};

TEST_F(OperatorStore, a_write_blocked_by_another_sessions_lock_is_refused_and_changes_nothing) {
  constexpr std::string_view kRow = "SELECT FROM tx_open WHERE nonce = 0 FOR UPDATE";
  constexpr std::string_view kCursor = "SELECT FROM signer_nonce_cursor FOR UPDATE";
  const auto accept = [this](pg::Pool& pool) -> awaitable<StepOutcome> {
    const auto accepted = co_await accept_chain_nonce(pool, "node-a", act(std::nullopt), 5);
    EXPECT_EQ(accepted.next_nonce, 5);
    co_return accepted.outcome;
  };
  const auto reset = [this](pg::Pool& pool) -> awaitable<StepOutcome> {
    auto plan = co_await plan_reset(pool, lease.key, 1, 0ms);
    const auto done = co_await reset_cursor(pool, "node-a", act(std::nullopt), 1, std::move(*plan));
    co_return done.outcome;
  };
  admin.must("UPDATE signer_nonce_cursor SET needs_reconcile = true");
  // Fill the gap before the cancel and the record, because those change attempts and states.
  const std::vector<Act> acts{
      {"rebroadcast", kRow,
       [&](pg::Pool& pool) { return rebroadcast_now(pool, "node-a", act(tx[0]), TxState::kAllocated); }},
      {"fill", kCursor, [&](pg::Pool& pool) { return fill_gap(pool, "node-a", act(std::nullopt), fill()); }},
      {"cancel", kRow, [&](pg::Pool& pool) { return store_cancel(pool, "node-a", act(tx[0]), cancel()); }},
      {"record", kRow,
       [&](pg::Pool& pool) { return record_attempt(pool, "node-a", act(tx[0]), TxState::kTracking, hash_of(9)); }},
      {"accept", kCursor, accept},
      {"reset", kCursor, reset},
  };
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    for (const auto& one : acts) {
      SCOPED_TRACE(one.name);
      const auto before = everything();
      stranger.must("BEGIN");
      stranger.must(one.locks);
      const auto code = co_await test::code_of(one.run(pool));
      EXPECT_EQ(code, "tx_locked");
      EXPECT_EQ(everything(), before);
      stranger.must("COMMIT");
      // The same write again, after the lock was released.
      const auto outcome = co_await one.run(pool);
      EXPECT_EQ(outcome, StepOutcome::kDone);
      EXPECT_NE(everything(), before);
    }
  });
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM operator_action"), 6);
}

// The filler takes a place in line behind those that wait, and has a nonce at once.
TEST_F(OperatorStore, a_filled_gap_leaves_the_line_as_it_is) {
  const auto line = [this] {
    return admin.value<std::string>(
        "SELECT concat_ws(' ', next_nonce, next_creation, first_waiting, first_unmined) FROM signer_nonce_cursor");
  };
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const std::vector<NewTx> waiting{new_tx(lease.key), new_tx(lease.key)};
    co_await create_batch(pool, "node-a", {{lease, 1}}, waiting);
    EXPECT_EQ(line(), "3 4 2 0");
    for (const auto& id : tx) mine(id, 1);
    admin.must("UPDATE signer_nonce_cursor SET first_unmined = 3");
    EXPECT_EQ(co_await fill_gap(pool, "node-a", act(std::nullopt), fill()), StepOutcome::kDone);
    EXPECT_EQ(line(), "3 5 2 2");
    const auto promoted = co_await promote(pool, "node-a", {{lease, 0}});
    EXPECT_EQ(promoted.size(), 2u);
    EXPECT_EQ(promoted.at(0).tx_id, waiting[0].tx_id);
    EXPECT_EQ(promoted.at(0).nonce, 3);
    EXPECT_EQ(promoted.at(1).nonce, 4);
    EXPECT_EQ(line(), "5 5 5 2");
    EXPECT_TRUE((co_await signers_waiting(pool, {{lease, 0}})).empty());
    // With an empty line a filler leaves it empty.
    admin.must("UPDATE signer_nonce_cursor SET next_nonce = 6");
    auto last = fill();
    last.nonce = 5;
    EXPECT_EQ(co_await fill_gap(pool, "node-a", act(std::nullopt), last), StepOutcome::kDone);
    EXPECT_EQ(line(), "6 6 6 2");
  });
}

TEST_F(OperatorStore, a_write_under_a_lease_that_was_lost_changes_nothing_and_waits_for_no_lock) {
  admin.must("UPDATE signer_lease SET owner_node = 'node-b', fencing_token = 2");
  const auto before = everything();
  stranger.must("BEGIN");
  stranger.must("SELECT FROM tx_open FOR UPDATE");
  stranger.must("SELECT FROM managed_tx FOR UPDATE");
  stranger.must("SELECT FROM signer_nonce_cursor FOR UPDATE");
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto again = co_await rebroadcast_now(pool, "node-a", act(tx[0]), TxState::kAllocated);
    EXPECT_EQ(again, StepOutcome::kFenced);
    const auto cancelled = co_await store_cancel(pool, "node-a", act(tx[0]), cancel());
    EXPECT_EQ(cancelled, StepOutcome::kFenced);
    const auto filled = co_await fill_gap(pool, "node-a", act(std::nullopt), fill());
    EXPECT_EQ(filled, StepOutcome::kFenced);
    const auto accepted = co_await accept_chain_nonce(pool, "node-a", act(std::nullopt), 5);
    EXPECT_EQ(accepted.outcome, StepOutcome::kFenced);
  });
  stranger.must("ROLLBACK");
  EXPECT_EQ(everything(), before);
}

}  // namespace
}  // namespace fencepost::tx
