// Tests the queries with which the workers find their work.
#include <set>

#include "tx/store/attempt_store.hpp"
#include "tx/store/protocol_test_support.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;

class WorkQueries : public ProtocolTest {
 protected:
  // Transactions with the nonces 0 … n-1, due now.
  std::vector<Uuid> allocated(const SignerLease& lease, int n, const std::string& node = "node-a") {
    std::vector<NewTx> items;
    items.reserve(n);
    for (int i = 0; i < n; ++i) items.push_back(new_tx(lease.key));
    with([&](pg::Pool& pool) -> awaitable<> { co_await create_batch(pool, node, {{lease, 0}}, items); });
    std::vector<Uuid> out;
    out.reserve(items.size());
    for (const auto& item : items) out.push_back(item.tx_id);
    return out;
  }

  template <class Body>
  void with(Body body) {
    test::with_pool(db.dsn(), {}, std::move(body));
  }

  void attempt(const Uuid& id, std::uint64_t hash, int number = 1, const std::string& kind = "original") {
    admin.must(
        "INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fencing_token) "
        "VALUES ($1, $2, $3, $4, $5, CASE WHEN $5 IN ('original', 'cancel') THEN '\\x0a'::bytea END, 1)",
        pg::Params::of(kChain, hash_of(hash), id, number, kind));
    set(id, fmt::format("tx_hash = '{}', first_submitted_at = clock_timestamp() - interval '10 s'", hash_of(hash)));
  }

  // "signer:nonce …", with the signers numbered 1, 2, … in the order of their creation.
  template <class Row>
  static std::string places(const std::vector<Row>& rows) {
    std::string out;
    for (const auto& row : rows) {
      out += fmt::format("{}{}:{}", out.empty() ? "" : " ", std::stoull(row.lease.key.signer, nullptr, 16) - 0x1000,
                         row.nonce);
    }
    return out;
  }

  std::string due(std::size_t limit = 100) {
    std::string out;
    with([&](pg::Pool& pool) -> awaitable<> { out = places(co_await due_submits(pool, "node-a", kChain, {}, limit)); });
    return out;
  }
  std::string due_of(std::vector<std::string> signers) {
    std::string out;
    with([&](pg::Pool& pool) -> awaitable<> {
      out = places(co_await due_submits(pool, "node-a", kChain, std::move(signers), 100));
    });
    return out;
  }

  static constexpr auto kLater = "next_resubmit_at = clock_timestamp() + interval '1 h'";
  static constexpr auto kEarlier = "next_resubmit_at = clock_timestamp() - interval '1 h'";
};

TEST_F(WorkQueries, due_submits_are_this_nodes_allocated_ones) {
  const auto one = signer_of("node-a"), two = signer_of("node-a"), other = signer_of("node-b"),
             lost = signer_of("node-a");
  const auto a = allocated(one, 2);
  allocated(two, 1);
  allocated(other, 1, "node-b");
  allocated(lost, 1);
  expire(lost.key);
  EXPECT_EQ(due(), "1:0 1:1 2:0");
  EXPECT_EQ(due_of({two.key.signer, other.key.signer, lost.key.signer}), "2:0");
  EXPECT_EQ(due_of({}), "");
  set(a[0], "state = 'TRACKING'");
  EXPECT_EQ(due(), "1:1 2:0");
}

TEST_F(WorkQueries, a_lower_nonce_that_waits_delays_the_higher_ones) {
  const auto one = signer_of("node-a"), two = signer_of("node-a");
  const auto a = allocated(one, 4);
  allocated(two, 2);
  set(a[1], kLater);
  EXPECT_EQ(due(), "1:0 2:0 2:1");
  set(a[0], kLater);
  EXPECT_EQ(due(), "2:0 2:1");
  set(a[0], "state = 'TRACKING'");
  EXPECT_EQ(due(), "2:0 2:1");
  set(a[1], "state = 'STUCK'");
  EXPECT_EQ(due(), "1:2 1:3 2:0 2:1");
}

// Each signer belongs to one lane, and both sides agree which.
TEST_F(WorkQueries, due_submits_of_the_lanes_are_all_and_of_no_signer_twice) {
  std::set<Uuid> all;
  for (int i = 0; i < 20; ++i) all.insert(allocated(signer_of("node-a"), 1)[0]);
  std::set<Uuid> found;
  with([&](pg::Pool& pool) -> awaitable<> {
    for (std::int64_t lane = 0; lane < kSubmitLanes; ++lane) {
      const auto rows = co_await due_submits(pool, "node-a", kChain, {}, 100, lane);
      EXPECT_GE(rows.size(), 5u);
      for (const auto& row : rows) {
        EXPECT_EQ(submit_lane_of(row.lease.key.signer), lane);
        EXPECT_TRUE(found.insert(row.tx_id).second);
      }
    }
  });
  EXPECT_EQ(found, all);
}

// The lowest nonce became due last and must still be sent first.
TEST_F(WorkQueries, due_submits_are_in_nonce_order_also_under_a_limit) {
  const auto one = signer_of("node-a"), two = signer_of("node-a");
  const auto a = allocated(one, 4);
  const auto b = allocated(two, 2);
  for (std::size_t i = 1; i < a.size(); ++i) set(a[i], kEarlier);
  set(b[1], kEarlier);
  EXPECT_EQ(due(1), "1:0");
  EXPECT_EQ(due(2), "1:0 1:1");
  EXPECT_EQ(due(5), "1:0 1:1 1:2 1:3 2:0");
}

// A signer's long backlog behind a waiting nonce must not fill the page and starve the other signers.
TEST_F(WorkQueries, a_blocked_signer_does_not_starve_others) {
  const auto one = signer_of("node-a"), two = signer_of("node-a");
  const auto a = allocated(one, 20);
  for (const auto& id : a) set(id, kEarlier);
  set(a[0], kLater);
  allocated(two, 1);
  EXPECT_EQ(due(5), "2:0");
}

TEST_F(WorkQueries, a_due_submit_has_everything_that_is_needed_to_send_it) {
  const auto lease = signer_of("node-a");
  const auto a = allocated(lease, 2);
  attempt(a[0], 1);
  attempt(a[0], 2, 2);
  admin.must("UPDATE tx_attempt SET outcome = 'refused' WHERE attempt = 2");
  set(a[0], "retry_count = 3");
  with([&](pg::Pool& pool) -> awaitable<> {
    const auto rows = co_await due_submits(pool, "node-a", kChain, {}, 10);
    EXPECT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].tx_id, a[0]);
    EXPECT_EQ(rows[0].lease.fencing_token, 1);
    EXPECT_EQ(rows[0].tx_hash, hash_of(2));
    EXPECT_EQ(rows[0].raw, "0x0a");
    EXPECT_EQ(rows[0].outcome, AttemptOutcome::kRefused);
    EXPECT_EQ(rows[0].attempts, 2);
    EXPECT_EQ(rows[0].retry_count, 3);
    EXPECT_EQ(rows[0].gas_limit, 21'000);
    EXPECT_TRUE(rows[0].payload.contains("\"to\""));
    EXPECT_EQ(rows[1].tx_hash, std::nullopt);
    EXPECT_EQ(rows[1].attempts, 0);
  });
}

TEST_F(WorkQueries, resubmits_are_tracked_ones_without_a_receipt_that_are_due) {
  const auto one = signer_of("node-a"), other = signer_of("node-b");
  const auto a = allocated(one, 6);
  const auto b = allocated(other, 1, "node-b");
  for (std::size_t i = 0; i < a.size(); ++i) {
    attempt(a[i], i + 1);
    set(a[i], "state = 'TRACKING'");
  }
  attempt(b[0], 100);
  set(b[0], "state = 'TRACKING'");
  set(a[1], kLater);
  set(a[2], "state = 'STUCK'");
  set(a[3], "state = 'ALLOCATED'");
  mine(a[4], 7);
  admin.must("UPDATE tx_attempt SET kind = 'recorded', raw = NULL WHERE tx_id = $1", pg::Params::of(a[5]));
  with([&](pg::Pool& pool) -> awaitable<> {
    const auto rows = co_await claim_resubmits(pool, "node-a", kChain, 60s, 10);
    EXPECT_EQ(places(rows), "1:0 1:2");  // a transaction that was not signed here has no bytes to send
    EXPECT_EQ(rows[0].tx_hash, hash_of(1));
    EXPECT_EQ(rows[0].raw, "0x0a");
    EXPECT_EQ(rows[1].state, TxState::kStuck);
    EXPECT_TRUE((co_await claim_resubmits(pool, "node-a", kChain, 60s, 10)).empty());
  });
  EXPECT_EQ(count("next_resubmit_at > clock_timestamp() + interval '50 s' AND last_submit_at IS NOT NULL", one.key), 3);
}

TEST_F(WorkQueries, blocks_are_matched_against_every_attempt_of_open_transactions) {
  const auto one = signer_of("node-a"), other = signer_of("node-b");
  const auto a = allocated(one, 4);
  const auto b = allocated(other, 1, "node-b");
  attempt(a[0], 1);
  attempt(a[0], 2, 2, "cancel");
  attempt(a[1], 3);
  mine(a[1], 9);
  set(a[1], fmt::format("sub_state = 'mined', announced_block = 11, announced_hash = '{}'", hash_of(11)));
  attempt(a[2], 4);
  mine(a[2], 9);
  end(a[2]);
  attempt(b[0], 5);
  with([&](pg::Pool& pool) -> awaitable<> {
    auto rows =
        co_await match_attempts(pool, "node-a", kChain, {hash_of(1), hash_of(3), hash_of(4), hash_of(5), hash_of(77)});
    std::ranges::sort(rows, {}, &Match::nonce);
    EXPECT_EQ(places(rows), "1:0 1:1");
    EXPECT_EQ(rows[0].attempt_hash, hash_of(1));
    EXPECT_EQ(rows[0].attempt_kind, AttemptKind::kOriginal);
    EXPECT_EQ(rows[0].state, TxState::kAllocated);
    EXPECT_EQ(rows[0].receipt_hash, std::nullopt);
    EXPECT_GE(rows[0].since_submit.value(), 10s);
    EXPECT_EQ(rows[1].receipt_hash, hash_of(9));
    EXPECT_EQ(rows[1].sub_state, SubState::kMined);
    EXPECT_EQ(rows[1].announced.value().number, 11);
    const auto cancel = co_await match_attempts(pool, "node-a", kChain, {hash_of(2)});
    EXPECT_EQ(cancel.size(), 1u);
    EXPECT_EQ(cancel[0].attempt_kind, AttemptKind::kCancel);
    EXPECT_TRUE((co_await match_attempts(pool, "node-a", kChain + 1, {hash_of(1)})).empty());
  });
}

TEST_F(WorkQueries, stale_receipts_were_not_looked_up_for_a_while) {
  const auto one = signer_of("node-a"), other = signer_of("node-b");
  const auto a = allocated(one, 5);
  const auto b = allocated(other, 1, "node-b");
  for (std::size_t i = 0; i < 4; ++i) attempt(a[i], i + 1);
  attempt(a[1], 20, 2, "cancel");
  attempt(b[0], 30);
  set(a[0], "last_receipt_check = clock_timestamp()");
  mine(a[2], 5);
  with([&](pg::Pool& pool) -> awaitable<> {
    // Submitted 10 s ago, never checked; the fifth has no attempt, the third has its receipt.
    auto rows = co_await stale_receipts(pool, "node-a", kChain, 5s, 10);
    EXPECT_EQ(places(rows), "1:1 1:1 1:3");
    EXPECT_EQ(rows[0].attempt_hash, hash_of(2));
    EXPECT_EQ(rows[1].attempt_hash, hash_of(20));
    rows = co_await stale_receipts(pool, "node-a", kChain, 60s, 10);
    EXPECT_TRUE(rows.empty());
    // Transactions that a former owner submitted are looked up at once.
    admin.must("UPDATE signer_lease SET fencing_token = 2 WHERE signer = $1", pg::Params::of(one.key.signer));
    rows = co_await stale_receipts(pool, "node-a", kChain, 60s, 10);
    EXPECT_EQ(places(rows), "1:1 1:1 1:3");
    EXPECT_EQ(rows[0].lease.fencing_token, 2);
    co_await note_receipt_checks(pool, {a[1], a[3]});
    rows = co_await stale_receipts(pool, "node-a", kChain, 60s, 10);
    EXPECT_TRUE(rows.empty());
  });
}

TEST_F(WorkQueries, mined_transactions_are_found_by_their_block) {
  const auto one = signer_of("node-a"), other = signer_of("node-b");
  const auto a = allocated(one, 5);
  const auto b = allocated(other, 1, "node-b");
  for (std::size_t i = 0; i < a.size(); ++i) attempt(a[i], i + 1);
  attempt(b[0], 50);
  mine(b[0], 11);
  mine(a[0], 12);
  mine(a[1], 11);
  mine(a[2], 13);
  mine(a[3], 11, false);
  set(a[3], "state = 'STUCK'");
  const auto more = signer_of("node-a");
  const auto c = allocated(more, 1);
  attempt(c[0], 60);
  mine(c[0], 12);
  with([&](pg::Pool& pool) -> awaitable<> {
    auto rows = co_await mined_between(pool, "node-a", kChain, {.from = 11, .to = 12}, {}, 10);
    EXPECT_EQ(places(rows), "1:1 1:3 1:0 3:0");
    EXPECT_EQ(rows[0].block, 11);
    EXPECT_EQ(rows[0].block_hash, hash_of(11));
    EXPECT_TRUE(rows[0].succeeded);
    EXPECT_EQ(rows[0].attempt_kind, AttemptKind::kOriginal);
    EXPECT_FALSE(rows[0].announced);
    EXPECT_FALSE(rows[1].succeeded);
    EXPECT_EQ(rows[1].state, TxState::kStuck);
    rows = co_await mined_between(pool, "node-a", kChain, {.from = 13}, {}, 10);
    EXPECT_EQ(places(rows), "1:2");
    // Page by page.
    rows = co_await mined_between(pool, "node-a", kChain, {}, {}, 2);
    EXPECT_EQ(places(rows), "1:1 1:3");
    rows = co_await mined_between(pool, "node-a", kChain, {}, rows[1], 2);
    EXPECT_EQ(places(rows), "1:0 3:0");
    rows = co_await mined_between(pool, "node-a", kChain, {}, rows[1], 2);
    EXPECT_EQ(places(rows), "1:2");
    rows = co_await mined_between(pool, "node-a", kChain, {}, rows[0], 2);
    EXPECT_TRUE(rows.empty());
    // The same by signer and nonce.
    rows = co_await mined_open(pool, "node-a", kChain, {.from = 11, .to = 12}, {}, 10);
    EXPECT_EQ(places(rows), "1:0 1:1 1:3 3:0");
    EXPECT_FALSE(rows[2].succeeded);
    rows = co_await mined_open(pool, "node-a", kChain, {}, {}, 2);
    EXPECT_EQ(places(rows), "1:0 1:1");
    rows = co_await mined_open(pool, "node-a", kChain, {}, rows[1], 2);
    EXPECT_EQ(places(rows), "1:2 1:3");
    rows = co_await mined_open(pool, "node-a", kChain, {}, rows[1], 2);
    EXPECT_EQ(places(rows), "3:0");
    EXPECT_TRUE((co_await mined_open(pool, "node-a", kChain, {}, rows[0], 2)).empty());
    // What has ended is no longer found.
    for (const auto& id : {a[1], a[3]}) end(id);
    rows = co_await mined_between(pool, "node-a", kChain, {.to = 12}, {}, 10);
    EXPECT_EQ(places(rows), "1:0 3:0");
    rows = co_await mined_open(pool, "node-a", kChain, {.to = 12}, {}, 10);
    EXPECT_EQ(places(rows), "1:0 3:0");
  });
}

TEST_F(WorkQueries, the_head_is_the_lowest_nonce_without_a_receipt) {
  const auto one = signer_of("node-a"), two = signer_of("node-a"), done = signer_of("node-a"),
             other = signer_of("node-b");
  const auto a = allocated(one, 3);
  const auto b = allocated(two, 2);
  const auto d = allocated(done, 1);
  allocated(other, 1, "node-b");
  attempt(a[0], 1);
  mine(a[0], 4);
  attempt(a[1], 2);
  set(a[1], "state = 'TRACKING'");
  mine(d[0], 4);
  with([&](pg::Pool& pool) -> awaitable<> {
    auto heads = co_await open_heads(pool, "node-a", kChain);
    std::ranges::sort(heads, {}, [](const OpenHead& head) { return head.lease.key; });
    EXPECT_EQ(places(heads), "1:1 2:0");
    EXPECT_EQ(heads[0].state, TxState::kTracking);
    EXPECT_LT(heads[0].waits, 10s);
    set(a[1], "watched_since = clock_timestamp() - interval '1 h'");
    set(a[1], "first_submitted_at = clock_timestamp() - interval '20 s'");
    set(b[0], "watched_since = clock_timestamp() - interval '1 h'");
    heads = co_await open_heads(pool, "node-a", kChain);
    std::ranges::sort(heads, {}, [](const OpenHead& head) { return head.lease.key; });
    EXPECT_GE(heads[0].waits, 20s);
    EXPECT_LT(heads[0].waits, 3600s);
    EXPECT_EQ(heads[0].tx_hash, hash_of(2));
    EXPECT_LT(heads[0].since_head.value(), 10s);
    EXPECT_GE(heads[1].waits, 3600s);   // never signed: since it got its nonce
    EXPECT_FALSE(heads[1].since_head);  // it is the signer's first nonce
    set(a[0], "receipt_changed_at = clock_timestamp() - interval '1 h'");
    heads = co_await open_heads(pool, "node-a", kChain);
    std::ranges::sort(heads, {}, [](const OpenHead& head) { return head.lease.key; });
    EXPECT_GE(heads[0].since_head.value(), 3600s);
    // Its receipt was withdrawn just now, so its time starts again.
    set(a[1], "receipt_changed_at = clock_timestamp(), withdrawn = true");
    heads = co_await open_heads(pool, "node-a", kChain);
    std::ranges::sort(heads, {}, [](const OpenHead& head) { return head.lease.key; });
    EXPECT_LT(heads[0].waits, 10s);
    EXPECT_TRUE(heads[0].withdrawn);
  });
}

// So our own transaction behind it is watched only from then on: docs/operations.md says so.
TEST_F(WorkQueries, another_senders_nonce_is_the_lowest_one_of_a_shared_signer_until_it_has_ended) {
  const auto lease = signer_of("node-a");
  const auto tx = allocated(lease, 2);
  set(tx[0], "state = 'TRACKING', sub_state = 'external'");
  set(tx[1], "state = 'TRACKING'");
  const auto heads = [&] {
    std::string out;
    with([&](pg::Pool& pool) -> awaitable<> { out = places(co_await open_heads(pool, "node-a", kChain)); });
    return out;
  };
  EXPECT_EQ(heads(), "1:0");
  end(tx[0], "FAILED_FINAL");
  EXPECT_EQ(heads(), "1:1");
}

}  // namespace
}  // namespace fencepost::tx
