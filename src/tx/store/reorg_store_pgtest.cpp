// Tests the writes after a reorg while another session has one of the rows locked: the other rows do not wait for it,
// and the locked row is written later.
#include "tx/store/protocol_test_support.hpp"
#include "tx/store/reorg_store.hpp"

namespace fencepost::tx {
namespace {

class ReorgStore : public ProtocolTest {
 protected:
  // Transactions with the nonces 0, 1, 2, due in an hour.
  std::vector<Uuid> three(const SignerLease& lease) {
    const std::vector<NewTx> items{new_tx(lease.key), new_tx(lease.key), new_tx(lease.key)};
    with([&](pg::Pool& pool) -> awaitable<> { co_await create_batch(pool, "node-a", {{lease, 0}}, items); });
    for (const auto& item : items) {
      set(item.tx_id, "state = 'TRACKING', next_resubmit_at = clock_timestamp() + interval '1 h'");
    }
    return {items[0].tx_id, items[1].tx_id, items[2].tx_id};
  }

  template <class Body>
  void with(Body body) {
    test::with_pool(db.dsn(), {}, std::move(body));
  }

  // The nonces for which the condition holds.
  std::string nonces(const std::string& what) {
    return admin.value<std::string>(
        "SELECT coalesce(string_agg(nonce::text, ' ' ORDER BY nonce), '') FROM tx_open WHERE " + what);
  }

  Session stranger{db.dsn(), "psql"};
};

TEST_F(ReorgStore, everything_from_a_nonce_up_becomes_due) {
  const auto lease = signer_of("node-a");
  three(lease);
  with([&](pg::Pool& pool) -> awaitable<> { co_await make_due_from(pool, "node-a", {{lease, 1}}); });
  EXPECT_EQ(nonces("next_resubmit_at <= clock_timestamp()"), "1 2");
}

TEST_F(ReorgStore, a_row_locked_by_another_session_does_not_delay_the_others) {
  const auto lease = signer_of("node-a");
  lock(stranger, three(lease)[1]);
  with([&](pg::Pool& pool) -> awaitable<> { co_await make_due_from(pool, "node-a", {{lease, 0}}); });
  EXPECT_EQ(nonces("next_resubmit_at <= clock_timestamp()"), "0 2");
}

TEST_F(ReorgStore, a_violation_locked_by_another_session_is_reported_later_and_the_others_now) {
  const auto lease = signer_of("node-a");
  const auto ids_of_three = three(lease);
  for (const auto& id : ids_of_three) {
    mine(id, 5);
    end(id);
  }
  const auto report = [&] {
    Violations found;
    with([&](pg::Pool& pool) -> awaitable<> {
      std::vector<Uuid> undone;
      for (const auto& tx : co_await ended_above(pool, kChain, 4, 5)) undone.push_back(tx.tx_id);
      found = co_await report_finality_violations(pool, "node-a", undone);
    });
    return found;
  };
  stranger.must("BEGIN");
  stranger.must("SELECT FROM tx_ended WHERE tx_id = $1 FOR UPDATE", pg::Params::of(ids_of_three[0]));
  const auto first = report();
  EXPECT_EQ(first.announced.size(), 2U);
  EXPECT_FALSE(first.all);
  stranger.must("COMMIT");
  const auto second = report();
  ASSERT_EQ(second.announced.size(), 1U);
  const auto& late = second.announced.front();
  EXPECT_EQ(late.tx_id, ids_of_three[0]);
  EXPECT_EQ(late.key, lease.key);
  EXPECT_EQ(late.nonce, 0);
  EXPECT_EQ(late.block, 5);
  EXPECT_TRUE(second.all);
  EXPECT_EQ(count_events("TxFinalityViolated"), 3);
  const auto third = report();
  EXPECT_TRUE(third.announced.empty());
  EXPECT_TRUE(third.all);
}

TEST_F(ReorgStore, what_ended_is_found_block_by_block_downwards) {
  const auto lease = signer_of("node-a");
  const auto tx = three(lease);
  for (int i = 0; i < 3; ++i) mine(tx[i], i == 0 ? 3 : 5);
  for (const int i : {0, 1}) end(tx[i]);  // the last one is mined and open
  const auto below = [&](std::int64_t block) {
    std::vector<EndedTx> ended;
    with([&](pg::Pool& pool) -> awaitable<> { ended = co_await ended_below(pool, kChain, block); });
    return ended;
  };
  const auto highest = below(6);
  ASSERT_EQ(highest.size(), 1U);
  EXPECT_EQ(highest.front().tx_id, tx[1]);
  EXPECT_EQ(highest.front().block, 5);
  EXPECT_EQ(highest.front().block_hash, hash_of(5));
  ASSERT_EQ(below(5).size(), 1U);
  EXPECT_EQ(below(5).front().tx_id, tx[0]);
  EXPECT_TRUE(below(3).empty());
  with([&](pg::Pool& pool) -> awaitable<> { co_await report_finality_violations(pool, "node-a", {tx[1]}); });
  EXPECT_EQ(below(6).front().tx_id, tx[0]) << "what was reported is not found again";
}

}  // namespace
}  // namespace fencepost::tx
