// Compares the chain's transaction count with the cursor.
#include "tx/store/cursor_store.hpp"
#include "tx/store/protocol_test_support.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;
using interleaving::all_orders;
using interleaving::Answer;
using interleaving::script_of;
using interleaving::Session;
using interleaving::Theatre;

class CursorProtocol : public ProtocolTest {
 protected:
  std::vector<CursorResult> observe(std::vector<ChainNonce> seen) {
    std::vector<CursorResult> out;
    test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
      out = co_await observe_chain_nonces(pool, "node-a", std::move(seen));
    });
    return out;
  }
  CursorResult observe(const SignerLease& lease, std::int64_t nonce, bool shared = false) {
    return observe({{lease, nonce, shared}}).at(0);
  }
  void create(const SignerLease& lease, int n, std::int64_t window = 0) {
    std::vector<NewTx> items;
    items.reserve(n);
    for (int i = 0; i < n; ++i) items.push_back(new_tx(lease.key));
    test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
      co_await create_batch(pool, "node-a", {{lease, window}}, items);
    });
  }
  // "next_nonce chain_nonce needs_reconcile"
  std::string cursor(const SignerLease& lease) {
    return admin.value<std::string>(
        "SELECT concat_ws(' ', coalesce(next_nonce::text, '-'), coalesce(chain_nonce::text, '-'), needs_reconcile) "
        "FROM signer_nonce_cursor WHERE signer = $1",
        pg::Params::of(lease.key.signer));
  }
};

TEST_F(CursorProtocol, first_use_seeds_the_cursor_from_the_chain) {
  const auto lease = signer_of("node-a", std::nullopt);
  create(lease, 2);
  const auto result = observe(lease, 12);
  EXPECT_EQ(result.outcome, CursorOutcome::kSeeded);
  EXPECT_EQ(result.next_nonce, 12);
  EXPECT_EQ(cursor(lease), "12 12 f");
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> { co_await promote(pool, "node-a", {{lease, 0}}); });
  EXPECT_EQ(broken(lease.key, 12), "");
  EXPECT_EQ(count("nonce IN (12, 13)", lease.key), 2);
}

TEST_F(CursorProtocol, a_chain_that_is_behind_or_level_changes_nothing) {
  const auto lease = signer_of("node-a");
  create(lease, 3);
  for (const std::int64_t nonce : {0, 2, 3}) {
    for (const bool shared : {false, true}) {
      const auto result = observe(lease, nonce, shared);
      EXPECT_EQ(result.outcome, CursorOutcome::kUnchanged);
      EXPECT_EQ(result.next_nonce, 3);
    }
  }
  EXPECT_EQ(cursor(lease), "3 3 f");
}

TEST_F(CursorProtocol, an_exclusive_signer_that_the_chain_is_ahead_of_needs_reconcile) {
  const auto lease = signer_of("node-a");
  create(lease, 2);
  const auto result = observe(lease, 5);
  EXPECT_EQ(result.outcome, CursorOutcome::kMismatch);
  EXPECT_EQ(result.next_nonce, 2);
  EXPECT_EQ(cursor(lease), "2 5 t");
  // The flag stays set until an operator accepts the chain's count.
  EXPECT_EQ(observe(lease, 2).outcome, CursorOutcome::kUnchanged);
  EXPECT_EQ(cursor(lease), "2 2 t");
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(CursorProtocol, a_shared_signer_reserves_the_nonces_of_other_senders) {
  const auto lease = signer_of("node-a");
  create(lease, 2);
  const auto result = observe(lease, 5, true);
  EXPECT_EQ(result.outcome, CursorOutcome::kAdvanced);
  EXPECT_EQ(result.next_nonce, 5);
  EXPECT_EQ(cursor(lease), "5 5 f");
  EXPECT_EQ(count("sub_state = 'external' AND state = 'TRACKING' AND nonce IN (2, 3, 4) AND tx_hash IS NULL AND "
                  "request_id IS NULL AND next_resubmit_at IS NULL",
                  lease.key),
            3);
  create(lease, 1);
  EXPECT_EQ(count("nonce = 5 AND creation_seq = 5 AND state = 'ALLOCATED'", lease.key), 1);
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM history WHERE sub_state = 'external'"), 3);
}

TEST_F(CursorProtocol, a_shared_signer_more_than_a_thousand_behind_needs_reconcile) {
  const auto lease = signer_of("node-a");
  EXPECT_EQ(observe(lease, 1001, true).outcome, CursorOutcome::kMismatch);
  EXPECT_EQ(cursor(lease), "0 1001 t");
  EXPECT_EQ(count("true", lease.key), 0);
  const auto near = signer_of("node-a");
  EXPECT_EQ(observe(near, 1000, true).outcome, CursorOutcome::kAdvanced);
  EXPECT_EQ(count("sub_state = 'external'", near.key), 1000);
}

TEST_F(CursorProtocol, results_are_in_order_and_only_lost_leases_are_fenced) {
  const auto fresh = signer_of("node-a", std::nullopt), lost = signer_of("node-b"), old = signer_of("node-a");
  expire(old.key);
  const auto mine = signer_of("node-a");
  const auto results =
      observe({{mine, 0, false}, {old, 4, false}, {fresh, 9, false}, {lost, 4, true}, {mine, 0, false}});
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results[0].outcome, CursorOutcome::kUnchanged);
  EXPECT_EQ(results[1].outcome, CursorOutcome::kFenced);
  EXPECT_EQ(results[2].outcome, CursorOutcome::kSeeded);
  EXPECT_EQ(results[2].next_nonce, 9);
  EXPECT_EQ(results[3].outcome, CursorOutcome::kFenced);
  EXPECT_EQ(cursor(lost), "0 - f");
  EXPECT_EQ(cursor(old), "0 - f");
}

TEST_F(CursorProtocol, an_observation_and_a_create_in_any_order) {
  Theatre theatre(db.dsn());
  Session a(db.dsn(), "node-a"), b(db.dsn(), "node-a");
  int advanced = 0, kept = 0;
  for (const auto& order : all_orders({4, 4})) {
    const auto lease = signer_of("node-a");
    std::string outcome;
    // The chain's count is 1: another sender's transaction, or the one that the create is about to number.
    theatre.play({{a, script_of(create_statements("node-a", {{lease, 0}}, {new_tx(lease.key), new_tx(lease.key)}))},
                  {b, script_of(observe_statements("node-a", {{lease, 1, true}}),
                                [&](const Answer& x) { outcome = x.rows.one().get<std::string>("outcome"); })}},
                 order);
    const bool skipped = outcome == "advanced";
    EXPECT_EQ(count("true", lease.key), skipped ? 3 : 2) << theatre.trace();
    EXPECT_EQ(count("nonce = creation_seq", lease.key), skipped ? 3 : 2) << theatre.trace();
    EXPECT_EQ(cursor(lease), skipped ? "3 1 f" : "2 1 f") << theatre.trace();
    advanced += skipped;
    kept += outcome == "kept";
  }
  EXPECT_EQ(advanced + kept, 70);
  EXPECT_GT(advanced, 0);
  EXPECT_GT(kept, 0);
}

TEST_F(CursorProtocol, cursors_are_read_with_their_age) {
  const auto seen = signer_of("node-a"), unseen = signer_of("node-a", std::nullopt);
  observe(seen, 0);
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    auto cursors = co_await read_cursors(pool, {seen, unseen, {{kChain, "0x" + std::string(40, 'd')}, 1}}, 60s);
    std::ranges::sort(cursors, {}, &Cursor::key);
    EXPECT_EQ(cursors.size(), 2u);
    EXPECT_EQ(cursors[0].next_nonce, 0);
    EXPECT_EQ(cursors[0].chain_nonce, 0);
    EXPECT_FALSE(cursors[0].chain_nonce_is_old);
    EXPECT_EQ(cursors[1].next_nonce, std::nullopt);
    EXPECT_TRUE(cursors[1].chain_nonce_is_old);
    cursors = co_await read_cursors(pool, {seen}, 0s);
    EXPECT_TRUE(cursors[0].chain_nonce_is_old);
  });
}

}  // namespace
}  // namespace fencepost::tx
