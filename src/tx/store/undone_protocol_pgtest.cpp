// An operator's ways out of a chain that went back: reopening, giving up, moving the cursor down. When each is allowed,
// and against every other writer.
#include "tx/store/attempt_store.hpp"
#include "tx/store/cursor_reset_store.hpp"
#include "tx/store/gap_store.hpp"
#include "tx/store/give_up_store.hpp"
#include "tx/store/protocol_test_support.hpp"
#include "tx/store/reopen_store.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;
using interleaving::all_orders;
using interleaving::Answer;
using interleaving::commit;
using interleaving::opening;
using interleaving::script_of;
using interleaving::Session;
using interleaving::statement;
using interleaving::Theatre;

class UndoneProtocol : public ProtocolTest {
 protected:
  std::vector<Uuid> created(const SignerLease& lease, int n, std::int64_t window = 0) {
    std::vector<NewTx> items;
    items.reserve(n);
    for (int i = 0; i < n; ++i) items.push_back(new_tx(lease.key));
    play(create_statements("node-a", {{lease, window}}, items));
    std::vector<Uuid> out;
    out.reserve(items.size());
    for (const auto& item : items) out.push_back(item.tx_id);
    return out;
  }
  std::string play(const pg::Batch& batch) {
    std::string out;
    theatre.play({{a, script_of(batch, [&](const Answer& x) { out = outcomes(x).front(); })}}, {});
    return out;
  }
  static Claim claim_of(const SignerLease& lease, const Uuid& id, const std::string& hash,
                        std::optional<std::string> previous = std::nullopt) {
    return {.lease = lease,
            .tx_id = id,
            .previous_hash = std::move(previous),
            .tx_hash = hash,
            .raw = Bytes{1, 2},
            .fees = R"({"gasPrice":"1"})"};
  }
  std::string signed_one(const SignerLease& lease, const Uuid& id) {
    const auto hash = hash_of(++hashes_);
    play(claim_statements("node-a", {claim_of(lease, id, hash)}, 60s));
    return hash;
  }
  // A transaction that had ended in block `nonce + 1`, and is undone.
  std::string undo(const SignerLease& lease, const Uuid& id, std::int64_t block = 1) {
    const auto hash = signed_one(lease, id);
    mine(id, block);
    end(id);
    admin.must("UPDATE tx_ended SET sub_state = 'finality_violated' WHERE tx_id = $1", pg::Params::of(id));
    return hash;
  }
  static OperatorAct act(const SignerLease& lease, std::optional<Uuid> id = std::nullopt) {
    return {.lease = lease, .tx_id = id, .action = "by_hand", .reason = "test", .actor = "me"};
  }
  static pg::Batch reopen_of(const SignerLease& lease, const Uuid& id, Reopening what = {},
                             const std::string& node = "node-a") {
    return reopen_statements(node, act(lease, id), what);
  }
  ResetPlan plan_of(const SignerKey& key, std::int64_t next) {
    ResetPlan plan;
    test::with_pool(db.dsn(), {},
                    [&](pg::Pool& pool) -> awaitable<> { plan = (co_await plan_reset(pool, key, next, 0ms)).value(); });
    return plan;
  }
  pg::Batch reset_of(const SignerLease& lease, std::int64_t next) {
    return reset_statements("node-a", act(lease), next, plan_of(lease.key, next));
  }
  std::string cursor(const SignerKey& key) {
    return admin.value<std::string>(
        "SELECT concat_ws(' ', next_nonce, needs_reconcile, reconcile_reason, gap_nonce) FROM signer_nonce_cursor "
        "WHERE signer = $1",
        pg::Params::of(key.signer));
  }
  std::int64_t next_nonce(const SignerKey& key) {
    return admin.value<std::int64_t>("SELECT next_nonce FROM signer_nonce_cursor WHERE signer = $1",
                                     pg::Params::of(key.signer));
  }
  std::string seen(const Uuid& id) {
    return admin.value<std::string>(
        "SELECT concat_ws(' ', state, sub_state, coalesce(nonce::text, '-'), released_nonce) FROM tx_view "
        "WHERE tx_id = $1",
        pg::Params::of(id));
  }
  interleaving::Script takeover_of(const SignerLease& lease, std::function<void()> then = [] {}) {
    return {statement("expire", kExpire, pg::Params::of(kChain, lease.key.signer)),
            opening(statement("takeover", sql::kAcquireLeases.sql, acquire_params("node-b", {lease.key.signer}))),
            commit(std::move(then))};
  }

  Theatre theatre{db.dsn()};
  Session a{db.dsn(), "node-a"};
  Session b{db.dsn(), "node-a"};

 private:
  std::uint64_t hashes_ = 0;
};

TEST_F(UndoneProtocol, a_reopened_transaction_has_its_nonce_its_bytes_and_no_receipt) {
  const auto lease = signer_of("node-a");
  const auto tx = created(lease, 2);
  const auto hash = undo(lease, tx[0]);
  admin.must("UPDATE signer_nonce_cursor SET first_unmined = 1");
  admin.must("UPDATE tx_attempt SET message = 'execution reverted'");
  EXPECT_EQ(play(reopen_of(lease, tx[0])), "done");
  EXPECT_EQ(seen(tx[0]), "TRACKING reorged 0");
  EXPECT_EQ(count_open(fmt::format("tx_hash = '{}' AND withdrawn AND next_resubmit_at <= clock_timestamp() AND "
                                   "receipt_block IS NULL",
                                   hash),
                       lease.key),
            1);
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM tx_receipt"), 0);
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM tx_attempt WHERE message IS NULL"), 1);
  EXPECT_EQ(events(tx[0]), "TxAccepted TxReopened");
  EXPECT_EQ(broken(lease.key), "");
  EXPECT_EQ(play(reopen_of(lease, tx[0])), "moved") << "it is open already";
}

TEST_F(UndoneProtocol, a_reopened_transaction_may_carry_the_operators_cancel_instead) {
  const auto lease = signer_of("node-a");
  const auto id = created(lease, 1)[0];
  undo(lease, id);
  auto cancel = claim_of(lease, id, hash_of(0xc));
  cancel.kind = AttemptKind::kCancel;
  EXPECT_EQ(play(reopen_of(lease, id, {.cancel = cancel})), "done");
  EXPECT_EQ(seen(id), "TRACKING cancelling 0");
  EXPECT_EQ(
      admin.value<std::string>("SELECT a.kind || ' ' || a.attempt FROM tx_open JOIN tx_attempt AS a USING (tx_hash)"),
      "cancel 2");
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(UndoneProtocol, only_what_was_undone_and_whose_nonce_is_free_is_reopened) {
  const auto change = [&](const char* sql) {
    return [this, sql](const Uuid& id) { admin.must(sql, pg::Params::of(id)); };
  };
  struct Case {
    const char* what;
    std::function<void(const Uuid&)> make;
    Reopening reopening = {};
    const char* outcome = "moved";
  };
  const auto nothing = [](const Uuid&) {};
  const auto unreported = change("UPDATE tx_ended SET sub_state = NULL WHERE tx_id = $1");
  const Case cases[] = {
      {"the chain counts its nonce as used", nothing, {.proof = {.chain_count = 1}}},
      {"no reorg was reported", unreported},
      {"another block is off the chain", unreported, {.proof = {.orphan_block = hash_of(7)}}},
      {"its block is off the chain", unreported, {.proof = {.orphan_block = hash_of(1)}}, "done"},
      {"it ended in another state", nothing, {.from = TxState::kFailedFinal}},
      {"there are no bytes", change("UPDATE tx_attempt SET raw = NULL, kind = 'recorded' WHERE tx_id = $1")},
      {"its nonce is above the cursor",
       change("UPDATE signer_nonce_cursor AS c SET next_nonce = 0 FROM managed_tx AS m "
              "WHERE m.tx_id = $1 AND c.signer = m.signer")},
      {"its nonce was released", change("UPDATE managed_tx SET nonce = NULL, released_nonce = 0 WHERE tx_id = $1")},
      {"all is as it should be", nothing, {}, "done"},
  };
  for (const auto& c : cases) {
    const auto lease = signer_of("node-a");
    const auto id = created(lease, 1)[0];
    undo(lease, id);
    c.make(id);
    EXPECT_EQ(play(reopen_of(lease, id, c.reopening)), c.outcome) << c.what;
    EXPECT_EQ(count_open("true", lease.key), c.outcome == std::string("done") ? 1 : 0) << c.what;
  }
}

TEST_F(UndoneProtocol, a_reopening_and_a_takeover_in_any_order) {
  int reopened = 0, fenced = 0;
  Session taker(db.dsn(), "node-b");
  for (const auto& order : all_orders({5, 3})) {
    const auto lease = signer_of("node-a");
    const auto id = created(lease, 1)[0];
    undo(lease, id);
    std::string outcome, at_takeover;
    theatre.play({{a, script_of(reopen_of(lease, id), [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {taker, takeover_of(lease, [&] { at_takeover = seen(id); })}},
                 order);
    EXPECT_EQ(seen(id), at_takeover) << theatre.trace();
    EXPECT_EQ(seen(id), outcome == "done" ? "TRACKING reorged 0" : "CONFIRMED finality_violated 0") << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    reopened += outcome == "done";
    fenced += outcome == "fenced";
  }
  EXPECT_EQ(reopened + fenced, 56);
  EXPECT_GT(reopened, 0);
  EXPECT_GT(fenced, 0);
}

TEST_F(UndoneProtocol, a_reopening_and_a_create_in_any_order) {
  for (const auto& order : all_orders({5, 4})) {
    const auto lease = signer_of("node-a");
    const auto id = created(lease, 1)[0];
    undo(lease, id);
    std::string outcome;
    theatre.play({{a, script_of(reopen_of(lease, id), [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {b, script_of(create_statements("node-a", {{lease, 0}}, {new_tx(lease.key)}))}},
                 order);
    EXPECT_EQ(outcome, "done") << theatre.trace();
    EXPECT_EQ(count_open("nonce IN (0, 1)", lease.key), 2) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
  }
}

TEST_F(UndoneProtocol, two_reopenings_in_any_order_open_it_once) {
  for (const auto& order : all_orders({5, 5})) {
    const auto lease = signer_of("node-a");
    const auto id = created(lease, 1)[0];
    undo(lease, id);
    std::string one, other;
    theatre.play({{a, script_of(reopen_of(lease, id), [&](const Answer& x) { one = outcomes(x).front(); })},
                  {b, script_of(reopen_of(lease, id), [&](const Answer& x) { other = outcomes(x).front(); })}},
                 order);
    EXPECT_TRUE((one == "done") != (other == "done")) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
  }
}

// Either the promotion comes first, and the cancel finds a transaction with a nonce, or it never gets one.
TEST_F(UndoneProtocol, a_cancel_of_a_waiting_transaction_and_a_promotion_in_any_order) {
  int cancelled = 0, promoted = 0;
  for (const auto& order : all_orders({4, 4})) {
    const auto lease = signer_of("node-a");
    const auto tx = created(lease, 3, 1);  // the first has a nonce, the others wait
    std::string outcome;
    theatre.play({{a, script_of(cancel_waiting_statements("node-a", act(lease, tx[1])),
                                [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {b, script_of(promote_statements("node-a", {{lease, 3}}))}},
                 order);
    EXPECT_EQ(seen(tx[1]), outcome == "done" ? "FAILED_FINAL cancelled_by_operator -" : "ALLOCATED 1")
        << theatre.trace();
    EXPECT_EQ(seen(tx[2]), outcome == "done" ? "ALLOCATED 1" : "ALLOCATED 2") << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    cancelled += outcome == "done";
    promoted += outcome == "moved";
  }
  EXPECT_EQ(cancelled + promoted, 70);
  EXPECT_GT(cancelled, 0);
  EXPECT_GT(promoted, 0);
}

// Once no transaction waits, the next create gets its nonce at once.
TEST_F(UndoneProtocol, a_cancel_of_the_only_waiting_transaction_and_a_create_in_any_order) {
  int at_once = 0;
  for (const auto& order : all_orders({4, 4})) {
    const auto lease = signer_of("node-a");
    const auto tx = created(lease, 2, 1);
    const auto next = new_tx(lease.key);
    theatre.play({{a, script_of(cancel_waiting_statements("node-a", act(lease, tx[1])))},
                  {b, script_of(create_statements("node-a", {{lease, 9}}, {next}))}},
                 order);
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    at_once += state_of(next.tx_id) == "ALLOCATED";
    EXPECT_EQ(admin.value<std::int64_t>("SELECT next_creation - first_waiting FROM signer_nonce_cursor "
                                        "WHERE signer = $1",
                                        pg::Params::of(lease.key.signer)),
              state_of(next.tx_id) == "ALLOCATED" ? 0 : 1)
        << theatre.trace();
  }
  EXPECT_GT(at_once, 0);
  EXPECT_LT(at_once, 70);
}

TEST_F(UndoneProtocol, a_cancel_of_a_waiting_transaction_and_a_takeover_in_any_order) {
  int cancelled = 0, fenced = 0;
  Session taker(db.dsn(), "node-b");
  for (const auto& order : all_orders({4, 3})) {
    const auto lease = signer_of("node-a");
    const auto tx = created(lease, 2, 1);
    std::string outcome, at_takeover;
    theatre.play({{a, script_of(cancel_waiting_statements("node-a", act(lease, tx[1])),
                                [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {taker, takeover_of(lease, [&] { at_takeover = seen(tx[1]); })}},
                 order);
    EXPECT_EQ(seen(tx[1]), at_takeover) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    cancelled += outcome == "done";
    fenced += outcome == "fenced";
  }
  EXPECT_EQ(cancelled + fenced, 35);
  EXPECT_GT(cancelled, 0);
  EXPECT_GT(fenced, 0);
}

TEST_F(UndoneProtocol, only_what_is_stuck_because_its_nonce_was_taken_is_given_up) {
  const auto lease = signer_of("node-a");
  const auto tx = created(lease, 4);
  const auto stuck = "state = 'STUCK', sub_state = 'nonce_taken'";
  const auto other = hash_of(900);
  std::vector<std::string> hashes;
  for (const auto& id : tx) hashes.push_back(signed_one(lease, id));
  const auto give_up = [&](int i, const std::vector<std::string>& proven) {
    return play(give_up_statements("node-a", act(lease, tx[i]), proven));
  };
  set(tx[0], stuck);
  EXPECT_EQ(give_up(0, {}), "moved") << "its attempt was not asked for";
  EXPECT_EQ(give_up(0, {other}), "moved");
  set(tx[1], "state = 'STUCK', sub_state = 'no_receipt'");
  EXPECT_EQ(give_up(1, {hashes[1]}), "moved");
  set(tx[2], "state = 'TRACKING', sub_state = 'nonce_taken'");
  EXPECT_EQ(give_up(2, {hashes[2]}), "moved");
  mine(tx[3], 1);
  set(tx[3], stuck);
  EXPECT_EQ(give_up(3, {hashes[3]}), "moved") << "it has a receipt";
  EXPECT_EQ(give_up(0, {hashes[0], other}), "done");
  EXPECT_EQ(seen(tx[0]), "FAILED_FINAL given_up 0");
  EXPECT_EQ(events(tx[0]), "TxAccepted TxFailed");
  EXPECT_EQ(admin.value<std::string>("SELECT action || ' ' || tx_id FROM operator_action"),
            "by_hand " + tx[0].to_string());
  EXPECT_EQ(give_up(0, {hashes[0]}), "moved") << "it has ended";
  EXPECT_EQ(cursor(lease.key), "4 f");
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(UndoneProtocol, giving_up_and_a_takeover_in_any_order) {
  int done = 0, fenced = 0;
  Session taker(db.dsn(), "node-b");
  for (const auto& order : all_orders({4, 3})) {
    const auto lease = signer_of("node-a");
    const auto id = created(lease, 1)[0];
    const auto hash = signed_one(lease, id);
    set(id, "state = 'STUCK', sub_state = 'nonce_taken'");
    std::string outcome, at_takeover;
    theatre.play({{a, script_of(give_up_statements("node-a", act(lease, id), {hash}),
                                [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {taker, takeover_of(lease, [&] { at_takeover = seen(id); })}},
                 order);
    EXPECT_EQ(seen(id), at_takeover) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    done += outcome == "done";
    fenced += outcome == "fenced";
  }
  EXPECT_EQ(done + fenced, 35);
  EXPECT_GT(done, 0);
  EXPECT_GT(fenced, 0);
}

TEST_F(UndoneProtocol, a_reset_gives_up_what_is_open_and_releases_every_nonce) {
  const auto lease = signer_of("node-a");
  const auto tx = created(lease, 4);
  for (int i = 0; i < 2; ++i) {
    signed_one(lease, tx[i]);
    mine(tx[i], i + 1);
    end(tx[i]);
  }
  const auto hash = signed_one(lease, tx[2]);
  admin.must("UPDATE signer_nonce_cursor SET needs_reconcile = true, reconcile_reason = 'undone', gap_nonce = 1");
  EXPECT_EQ(play(reset_of(lease, 1)), "done");
  EXPECT_EQ(seen(tx[0]), "CONFIRMED 0");
  EXPECT_EQ(seen(tx[1]), "CONFIRMED finality_violated - 1");
  EXPECT_EQ(seen(tx[2]), "FAILED_FINAL given_up - 2");
  EXPECT_EQ(seen(tx[3]), "FAILED_FINAL given_up - 3");
  EXPECT_EQ(events(tx[0]), "TxAccepted");
  EXPECT_EQ(events(tx[1]), "TxAccepted TxFinalityViolated");
  EXPECT_EQ(events(tx[2]), "TxAccepted TxFailed");
  EXPECT_EQ(cursor(lease.key), "1 f");
  EXPECT_EQ(broken(lease.key), "");
  // The nonces are given again, and a transaction with the same bytes takes the attempt over.
  const auto next = created(lease, 2);
  EXPECT_EQ(id_at(lease.key, 1), next[0]);
  EXPECT_EQ(play(claim_statements("node-a", {claim_of(lease, next[1], hash)}, 60s)), "done");
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(UndoneProtocol, a_reset_is_refused_when_anything_has_changed_since_it_was_proven) {
  const struct {
    const char* what;
    std::function<void(const SignerLease&, const Uuid&)> make;
  } cases[] = {
      {"a transaction was created", [&](const SignerLease& lease, const Uuid&) { created(lease, 1); }},
      {"a transaction was signed", [&](const SignerLease& lease, const Uuid& id) { signed_one(lease, id); }},
      {"a broadcast was claimed",
       [&](const SignerLease&, const Uuid& id) { set(id, "last_submit_at = clock_timestamp()"); }},
  };
  for (const auto& c : cases) {
    const auto lease = signer_of("node-a");
    const auto id = created(lease, 1)[0];
    const auto reset = reset_of(lease, 0);
    c.make(lease, id);
    EXPECT_EQ(play(reset), "moved") << c.what;
    EXPECT_EQ(id_at(lease.key, 0), id) << c.what;
  }
  const auto lease = signer_of("node-a");
  created(lease, 1);
  EXPECT_EQ(play(reset_of(lease, 1)), "moved") << "it would not move the cursor down";
}

// Either the create comes second and gets the released nonce, or the reset finds more than was proven.
TEST_F(UndoneProtocol, a_reset_and_a_create_in_any_order) {
  int reset = 0, refused = 0;
  for (const auto& order : all_orders({6, 4})) {
    const auto lease = signer_of("node-a");
    const auto id = created(lease, 1)[0];
    const auto next = new_tx(lease.key);
    std::string outcome;
    theatre.play({{a, script_of(reset_of(lease, 0), [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {b, script_of(create_statements("node-a", {{lease, 0}}, {next}))}},
                 order);
    EXPECT_EQ(id_at(lease.key, 0), outcome == "done" ? next.tx_id : id) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    reset += outcome == "done";
    refused += outcome == "moved";
  }
  EXPECT_EQ(reset + refused, 210);
  EXPECT_GT(reset, 0);
  EXPECT_GT(refused, 0);
}

TEST_F(UndoneProtocol, a_reset_and_a_promotion_in_any_order) {
  int reset = 0, refused = 0;
  for (const auto& order : all_orders({6, 4})) {
    const auto lease = signer_of("node-a");
    const auto tx = created(lease, 2, 1);  // the second one waits
    std::string outcome;
    theatre.play({{a, script_of(reset_of(lease, 0), [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {b, script_of(promote_statements("node-a", {{lease, 2}}))}},
                 order);
    EXPECT_EQ(id_at(lease.key, 0), outcome == "done" ? tx[1] : tx[0]) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    reset += outcome == "done";
    refused += outcome == "moved";
  }
  EXPECT_EQ(reset + refused, 210);
  EXPECT_GT(reset, 0);
  EXPECT_GT(refused, 0);
}

// A claim is about to send: either it is seen, and nothing is given up, or it finds no transaction.
TEST_F(UndoneProtocol, a_reset_and_a_claim_in_any_order) {
  int reset = 0, claimed = 0;
  for (const auto& order : all_orders({6, 4})) {
    const auto lease = signer_of("node-a");
    const auto id = created(lease, 1)[0];
    const auto hash = signed_one(lease, id);
    std::string outcome, claim;
    theatre.play({{a, script_of(reset_of(lease, 0), [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {b, script_of(claim_statements("node-a", {claim_of(lease, id, hash, hash)}, 60s),
                                [&](const Answer& x) { claim = outcomes(x).front(); })}},
                 order);
    EXPECT_EQ(claim, outcome == "done" ? "moved" : "done") << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    reset += outcome == "done";
    claimed += claim == "done";
  }
  EXPECT_EQ(reset + claimed, 210);
  EXPECT_GT(reset, 0);
  EXPECT_GT(claimed, 0);
}

TEST_F(UndoneProtocol, a_reset_and_a_takeover_in_any_order) {
  int reset = 0, fenced = 0;
  Session taker(db.dsn(), "node-b");
  for (const auto& order : all_orders({6, 3})) {
    const auto lease = signer_of("node-a");
    created(lease, 1);
    std::string outcome;
    std::int64_t at_takeover = -1;
    theatre.play({{a, script_of(reset_of(lease, 0), [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {taker, takeover_of(lease, [&] { at_takeover = next_nonce(lease.key); })}},
                 order);
    EXPECT_EQ(next_nonce(lease.key), at_takeover) << theatre.trace();
    EXPECT_EQ(next_nonce(lease.key), outcome == "done" ? 0 : 1) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    reset += outcome == "done";
    fenced += outcome == "fenced";
  }
  EXPECT_EQ(reset + fenced, 84);
  EXPECT_GT(reset, 0);
  EXPECT_GT(fenced, 0);
}

TEST_F(UndoneProtocol, the_lowest_gap_is_found_and_stops_new_nonces_until_it_is_filled) {
  const auto lease = signer_of("node-a");
  const auto tx = created(lease, 3);
  undo(lease, tx[1]);
  std::vector<std::optional<Gap>> gaps;
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    gaps = co_await find_gaps(pool, {{lease, 0}, {lease, 1}, {lease, 2}, {lease, 3}, {lease, 9}});
  });
  ASSERT_TRUE(gaps[0] && gaps[1]);
  EXPECT_EQ(gaps[0]->nonce, 1);
  EXPECT_EQ(gaps[1]->tx_id, tx[1]);
  EXPECT_EQ(gaps[1]->receipt_block, 1);
  EXPECT_FALSE(gaps[2] || gaps[3] || gaps[4]);

  const auto note = [&](std::int64_t counted, std::optional<std::int64_t> nonce) {
    return play(note_statements("node-a", {{{lease, counted}, nonce}}));
  };
  EXPECT_EQ(note(0, 0), "moved") << "nonce 0 has an open transaction";
  EXPECT_EQ(note(0, std::nullopt), "moved");
  EXPECT_EQ(note(0, 1), "noted");
  EXPECT_EQ(cursor(lease.key), "3 t undone 1");
  EXPECT_EQ(play(create_statements("node-a", {{lease, 0}}, {new_tx(lease.key)})), "reconcile");
  EXPECT_EQ(play(reopen_of(lease, tx[1])), "done");
  EXPECT_EQ(note(0, std::nullopt), "cleared");
  EXPECT_EQ(cursor(lease.key), "3 f");
  admin.must("UPDATE signer_nonce_cursor SET needs_reconcile = true");
  EXPECT_EQ(note(0, std::nullopt), "moved") << "the chain is ahead: only an operator clears it";
}

TEST_F(UndoneProtocol, nothing_above_a_gap_is_broadcast) {
  const auto lease = signer_of("node-a");
  const auto tx = created(lease, 3);
  for (const auto& id : tx) signed_one(lease, id);
  admin.must("UPDATE tx_open SET state = 'TRACKING', next_resubmit_at = clock_timestamp()");
  admin.must("UPDATE signer_nonce_cursor SET needs_reconcile = true, reconcile_reason = 'gap', gap_nonce = 1");
  std::size_t due = 0;
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    due = (co_await claim_resubmits(pool, "node-a", kChain, 60s, 10)).size();
  });
  EXPECT_EQ(due, 1U);
}

}  // namespace
}  // namespace fencepost::tx
