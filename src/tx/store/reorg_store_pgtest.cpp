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
  evm::HeaderWindow window(10);
  const evm::BlockHeader other{.number = 5, .hash = hash_of(55), .parent_hash = hash_of(4)};
  ASSERT_TRUE(window.apply(std::span(&other, 1)));
  const auto report = [&] {
    Violations found;
    with([&](pg::Pool& pool) -> awaitable<> {
      found = co_await report_finality_violations(pool, "node-a", kChain, 4, 5, window);
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

}  // namespace
}  // namespace fencepost::tx
