#include "tx/store/protocol_test_support.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {
namespace {

class TxStore : public ProtocolTest {
 protected:
  std::vector<Uuid> create(const SignerLease& lease, int n, std::int64_t window = 0) {
    std::vector<NewTx> items;
    items.reserve(n);
    for (int i = 0; i < n; ++i) items.push_back(new_tx(lease.key, fmt::format("r{}", ++requests)));
    test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
      co_await create_batch(pool, "node-a", {{lease, window}}, items);
    });
    std::vector<Uuid> out;
    out.reserve(items.size());
    for (const auto& item : items) out.push_back(item.tx_id);
    return out;
  }
  // Puts a new transaction into the state.
  void bring(const Uuid& id, const std::string& state) {
    if (state == "CREATED") {
      admin.must("DELETE FROM tx_open WHERE tx_id = $1", pg::Params::of(id));
      admin.must("UPDATE managed_tx SET nonce = NULL WHERE tx_id = $1", pg::Params::of(id));
    } else if (state == "CONFIRMED" || state == "FAILED_FINAL") {
      mine(id, 1);
      end(id, state);
    } else {
      set(id, fmt::format("state = '{}'", state));
    }
  }
  std::vector<Uuid> list(TxFilter filter) {
    std::vector<Uuid> out;
    test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
      for (const auto& tx : co_await list_txs(pool, std::move(filter))) out.push_back(tx.tx_id);
    });
    return out;
  }
  std::optional<Uuid> blocked_by(const Uuid& id) {
    std::optional<Uuid> out;
    test::with_pool(db.dsn(), {},
                    [&](pg::Pool& pool) -> awaitable<> { out = (co_await find_tx(pool, id)).value().blocked_by; });
    return out;
  }

  int requests = 0;
};

using Ids = std::vector<Uuid>;

TEST_F(TxStore, lists_newest_first_page_by_page) {
  const auto lease = signer_of("node-a");
  const auto t = create(lease, 5);
  EXPECT_EQ(list({}), (Ids{t[4], t[3], t[2], t[1], t[0]}));
  EXPECT_EQ(list({.limit = 2}), (Ids{t[4], t[3]}));
  EXPECT_EQ(list({.before = t[3], .limit = 2}), (Ids{t[2], t[1]}));
  EXPECT_EQ(list({.before = t[0], .limit = 2}), Ids{});
}

// States use different statements, and each statement must apply every filter.
TEST_F(TxStore, lists_by_state_with_every_other_filter) {
  const auto one = signer_of("node-a"), two = signer_of("node-a");
  for (const std::string state : {"CREATED", "ALLOCATED", "TRACKING", "STUCK", "CONFIRMED", "FAILED_FINAL"}) {
    SCOPED_TRACE(state);
    const auto a = create(one, 3), b = create(two, 1);
    for (const auto& id : {a[0], a[2], b[0]}) bring(id, state);
    bring(a[1], state == "TRACKING" ? "STUCK" : "TRACKING");
    EXPECT_EQ(list({.state = state}), (Ids{b[0], a[2], a[0]}));
    EXPECT_EQ(list({.state = state, .limit = 2}), (Ids{b[0], a[2]}));
    EXPECT_EQ(list({.state = state, .before = a[2]}), Ids{a[0]});
    EXPECT_EQ(list({.signer = one.key.signer, .state = state}), (Ids{a[2], a[0]}));
    EXPECT_EQ(list({.state = state, .allowed_signers = std::vector{two.key.signer}}), Ids{b[0]});
    EXPECT_EQ(list({.chain_id = kChain, .state = state}), (Ids{b[0], a[2], a[0]}));
    EXPECT_EQ(list({.chain_id = kChain + 1, .state = state}), Ids{});
    for (const auto* table : {"tx_open", "tx_ended", "tx_receipt", "managed_tx"}) {
      admin.must(fmt::format("DELETE FROM {}", table));
    }
  }
}

TEST_F(TxStore, lists_by_signer) {
  const auto one = signer_of("node-a"), two = signer_of("node-a");
  const auto a = create(one, 2), b = create(two, 1);
  EXPECT_EQ(list({.signer = one.key.signer}), (Ids{a[1], a[0]}));
  EXPECT_EQ(list({.signer = one.key.signer, .before = a[1]}), Ids{a[0]});
  EXPECT_EQ(list({.signer = one.key.signer, .allowed_signers = std::vector{two.key.signer}}), Ids{});
  EXPECT_EQ(list({.allowed_signers = std::vector{two.key.signer}}), Ids{b[0]});
  EXPECT_EQ(list({.allowed_signers = std::vector<std::string>{}}), Ids{});
}

TEST_F(TxStore, finds_by_request_in_the_order_asked) {
  const auto one = signer_of("node-a"), two = signer_of("node-a");
  const auto a = create(one, 2);  // r1, r2
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto found =
        co_await find_requests(pool, {{one.key, "r2"}, {two.key, "r2"}, {one.key, "nope"}, {one.key, "r1"}});
    EXPECT_EQ(found.size(), 4u);
    EXPECT_EQ(found[0].value().tx.tx_id, a[1]);
    EXPECT_EQ(found[0].value().payload_hash, std::string(32, 'p'));
    EXPECT_FALSE(found[1]);
    EXPECT_FALSE(found[2]);
    EXPECT_EQ(found[3].value().tx.tx_id, a[0]);
    EXPECT_FALSE(co_await find_tx(pool, ids.next()));
  });
}

TEST_F(TxStore, a_list_names_what_blocks_each_transaction_as_a_lookup_does) {
  const auto one = signer_of("node-a"), two = signer_of("node-a");
  const auto t = create(one, 5, 4);
  const auto u = create(two, 3, 3);
  set(t[1], "state = 'STUCK'");
  set(u[0], "retry_count = 1");
  set(u[2], "receipt_block = 1, receipt_hash = '0x', succeeded = true");
  bring(t[0], "CONFIRMED");
  const auto undone = signer_of("node-a");
  const auto v = create(undone, 4, 4);
  bring(v[1], "CONFIRMED");
  set(v[3], "state = 'STUCK'");
  db.exec(
      "UPDATE signer_nonce_cursor AS c SET needs_reconcile = true, reconcile_reason = 'undone', gap_nonce = m.nonce "
      "FROM managed_tx AS m WHERE m.tx_id = '" +
      v[1].to_string() + "' AND c.signer = m.signer");
  std::map<Uuid, std::optional<Uuid>> listed;
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    for (const auto& tx : co_await list_txs(pool, {})) listed[tx.tx_id] = tx.blocked_by;
  });
  EXPECT_EQ(listed.size(), 12U);
  for (const auto& [id, blocker] : listed) EXPECT_EQ(blocker, blocked_by(id)) << id.to_string();
  EXPECT_EQ(listed[t[2]], t[1]);
  EXPECT_EQ(listed[t[4]], t[1]);
  EXPECT_EQ(listed[u[1]], u[0]);
  EXPECT_EQ(listed[v[0]], std::nullopt);
  EXPECT_EQ(listed[v[2]], v[1]) << "its nonce is free again";
}

TEST_F(TxStore, transactions_above_a_stuck_nonce_are_blocked_by_it) {
  const auto lease = signer_of("node-a");
  const auto t = create(lease, 5, 4);
  EXPECT_EQ(blocked_by(t[2]), std::nullopt);
  set(t[1], "state = 'STUCK'");
  set(t[2], "state = 'STUCK'");
  EXPECT_EQ(blocked_by(t[0]), std::nullopt);
  EXPECT_EQ(blocked_by(t[1]), std::nullopt);
  EXPECT_EQ(blocked_by(t[2]), t[1]);
  EXPECT_EQ(blocked_by(t[3]), t[1]);
  EXPECT_EQ(blocked_by(t[4]), t[1]);  // has no nonce yet
  set(t[1], "receipt_block = 1, receipt_hash = '0x', succeeded = true");
  EXPECT_EQ(blocked_by(t[3]), t[2]);
  bring(t[3], "CONFIRMED");
  EXPECT_EQ(blocked_by(t[3]), std::nullopt);
}

TEST_F(TxStore, signers_and_backlogs_count_open_transactions) {
  const auto one = signer_of("node-a"), two = signer_of("node-b", std::nullopt);
  const auto t = create(one, 6, 5);
  bring(t[0], "CONFIRMED");
  bring(t[1], "TRACKING");
  mine(t[2], 1);
  set(t[3], "state = 'STUCK'");
  expire(two.key);
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    auto signers = co_await list_signers(pool, std::nullopt);
    EXPECT_EQ(signers.size(), 2u);
    EXPECT_EQ(signers[0].key, one.key);
    EXPECT_EQ(signers[0].leader, "node-a");
    EXPECT_EQ(signers[0].fencing_token, 1);
    EXPECT_EQ(signers[0].next_nonce, 5);
    EXPECT_EQ(signers[0].counts.at("TRACKING").as_int64(), 2);
    EXPECT_EQ(signers[0].counts.at("STUCK").as_int64(), 1);
    EXPECT_EQ(signers[0].counts.at("ALLOCATED").as_int64(), 1);
    EXPECT_EQ(signers[0].counts.at("CREATED").as_int64(), 1);
    EXPECT_FALSE(signers[0].counts.as_object().contains("CONFIRMED"));
    EXPECT_TRUE(signers[0].oldest_open.has_value());
    EXPECT_EQ(signers[1].leader, "");
    EXPECT_EQ(signers[1].next_nonce, std::nullopt);
    EXPECT_TRUE(signers[1].counts.as_object().empty());
    EXPECT_FALSE(signers[1].oldest_open);
    signers = co_await list_signers(pool, std::vector{two.key.signer});
    EXPECT_EQ(signers.size(), 1u);

    const auto backlog = co_await backlogs(pool, "node-a", kChain);
    EXPECT_EQ(backlog.size(), 1u);
    EXPECT_EQ(backlog[0].key, one.key);
    EXPECT_EQ(backlog[0].created, 1);
    EXPECT_EQ(backlog[0].allocated, 1);
    EXPECT_EQ(backlog[0].tracking, 2);
    EXPECT_EQ(backlog[0].stuck, 1);
    EXPECT_EQ(backlog[0].without_receipt, 2);
    EXPECT_GE(backlog[0].oldest_age_seconds, 0);
    EXPECT_TRUE((co_await backlogs(pool, "node-b", kChain)).empty());
  });
}

}  // namespace
}  // namespace fencepost::tx
