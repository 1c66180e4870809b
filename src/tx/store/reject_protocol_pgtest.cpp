// Releasing the nonce of a transaction that can never be sent: when it is allowed, and against every other writer.
#include "tx/store/attempt_store.hpp"
#include "tx/store/mined_after_end_store.hpp"
#include "tx/store/operator_store.hpp"
#include "tx/store/protocol_test_support.hpp"
#include "tx/store/reject_store.hpp"
#include "tx/store/step_store.hpp"

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

class RejectProtocol : public ProtocolTest {
 protected:
  std::vector<Uuid> allocated(const SignerLease& lease, int n, std::int64_t window = 0) {
    std::vector<NewTx> items;
    items.reserve(n);
    for (int i = 0; i < n; ++i) items.push_back(new_tx(lease.key));
    theatre.play({{a, script_of(create_statements("node-a", {{lease, window}}, items))}}, {});
    std::vector<Uuid> out;
    out.reserve(items.size());
    for (const auto& item : items) out.push_back(item.tx_id);
    return out;
  }
  // Stores an attempt with this outcome; "" for none yet. Each has a hash of its own.
  std::string attempt(const SignerLease& lease, const Uuid& id, const std::string& outcome,
                      std::optional<std::string> previous = std::nullopt) {
    const auto hash = hash_of(++hashes_);
    theatre.play({{a, script_of(claim_statements("node-a", {claim_of(lease, id, hash, std::move(previous))}, 60s))}},
                 {});
    if (!outcome.empty()) {
      admin.must("UPDATE tx_attempt SET outcome = $2 WHERE tx_hash = $1", pg::Params::of(hash, outcome));
    }
    return hash;
  }
  static Claim claim_of(const SignerLease& lease, const Uuid& id, const std::string& hash,
                        std::optional<std::string> previous) {
    return {.lease = lease,
            .tx_id = id,
            .previous_hash = std::move(previous),
            .tx_hash = hash,
            .raw = Bytes{1, 2},
            .fees = R"({"gasPrice":"1"})"};
  }
  static Rejection rejection(const SignerLease& lease, const Uuid& id, TxState from = TxState::kAllocated) {
    return {.lease = lease, .tx_id = id, .from = from, .reason = SubState::kInvalid, .message = "too much gas"};
  }
  std::string try_reject(const Rejection& what, const std::string& node = "node-a") {
    std::string out;
    theatre.play({{a, script_of(reject_statements(node, what), [&](const Answer& x) { out = outcomes(x).front(); })}},
                 {});
    return out;
  }
  std::int64_t next_nonce(const SignerKey& key) {
    return admin.value<std::int64_t>("SELECT next_nonce FROM signer_nonce_cursor WHERE signer = $1",
                                     pg::Params::of(key.signer));
  }
  std::string ended(const Uuid& id) {
    return admin.value<std::string>(
        "SELECT concat_ws(' ', state, sub_state, coalesce(nonce::text, '-'), released_nonce) FROM tx_view "
        "WHERE tx_id = $1",
        pg::Params::of(id));
  }

  Theatre theatre{db.dsn()};
  Session a{db.dsn(), "node-a"};
  Session b{db.dsn(), "node-a"};

 private:
  std::uint64_t hashes_ = 0;
};

TEST_F(RejectProtocol, the_last_nonce_is_released_when_every_attempt_was_refused) {
  const auto lease = signer_of("node-a", 7);
  const auto tx = allocated(lease, 2);
  const auto first = attempt(lease, tx[1], "refused");
  attempt(lease, tx[1], "refused", first);
  EXPECT_EQ(try_reject(rejection(lease, tx[1])), "done");
  EXPECT_EQ(ended(tx[1]), "FAILED_FINAL rejected - 8");
  EXPECT_EQ(events(tx[1]), "TxAccepted TxFailed");
  EXPECT_EQ(next_nonce(lease.key), 8);
  EXPECT_EQ(broken(lease.key, 7), "");
  // The next lower one, which was never signed, and then a new transaction.
  EXPECT_EQ(try_reject(rejection(lease, tx[0])), "done");
  const auto next = allocated(lease, 2);
  EXPECT_EQ(id_at(lease.key, 7), next[0]);
  EXPECT_EQ(id_at(lease.key, 8), next[1]);
  EXPECT_EQ(broken(lease.key, 7), "");
}

TEST_F(RejectProtocol, a_nonce_that_may_be_in_use_is_not_released) {
  struct Case {
    const char* what;
    std::function<void(const SignerLease&, const Uuid&)> make;
  };
  const auto change = [&](const char* sql) {
    return [this, sql](const SignerLease& lease, const Uuid&) { admin.must(sql, pg::Params::of(lease.key.signer)); };
  };
  const auto attempted = [&](const char* outcome) {
    return [this, outcome](const SignerLease& lease, const Uuid& id) {
      const auto first = attempt(lease, id, outcome);
      attempt(lease, id, "refused", first);
    };
  };
  const Case cases[] = {
      {"an attempt is being sent", attempted("")},
      {"the outcome of an attempt is unknown", attempted("unknown")},
      {"an attempt was accepted", attempted("accepted")},
      {"an attempt was recorded",
       [&](const SignerLease&, const Uuid& id) {
         admin.must(
             "INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, outcome, fencing_token) "
             "VALUES (31337, $2, $1, 9, 'recorded', 'refused', 1)",
             pg::Params::of(id, hash_of(0xabc)));
       }},
      {"a higher nonce was assigned", [&](const SignerLease& lease, const Uuid&) { allocated(lease, 1); }},
      {"the chain counts the nonce", change("UPDATE signer_nonce_cursor SET chain_nonce = 1 WHERE signer = $1")},
      {"the signer needs an operator",
       change("UPDATE signer_nonce_cursor SET needs_reconcile = true WHERE signer = $1")},
      {"it was in a block once", change("UPDATE tx_open SET withdrawn = true WHERE signer = $1")},
      {"it was broadcast", change("UPDATE tx_open SET state = 'TRACKING' WHERE signer = $1")},
      {"it is stuck for want of a receipt",
       change("UPDATE tx_open SET state = 'STUCK', sub_state = 'no_receipt' WHERE signer = $1")},
      {"it has a place behind those that wait",
       change("UPDATE signer_nonce_cursor SET first_waiting = 0 WHERE signer = $1")},
  };
  for (const auto& c : cases) {
    const auto lease = signer_of("node-a");
    const auto id = allocated(lease, 1)[0];
    c.make(lease, id);
    for (const auto from : {TxState::kAllocated, TxState::kStuck}) {
      EXPECT_EQ(try_reject(rejection(lease, id, from)), "moved") << c.what;
    }
    EXPECT_EQ(id_at(lease.key, 0), id) << c.what;
    EXPECT_EQ(events(id), "TxAccepted") << c.what;
  }
}

TEST_F(RejectProtocol, a_stuck_transaction_is_released_only_for_the_reason_that_was_read) {
  const auto lease = signer_of("node-a");
  const auto id = allocated(lease, 1)[0];
  attempt(lease, id, "refused");
  set(id, "state = 'STUCK', sub_state = 'intrinsic_gas'");
  EXPECT_EQ(try_reject(rejection(lease, id, TxState::kStuck)), "moved");
  set(id, "sub_state = 'invalid'");
  EXPECT_EQ(try_reject(rejection(lease, id, TxState::kStuck)), "done");
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(RejectProtocol, a_node_without_the_lease_releases_nothing) {
  const auto lease = signer_of("node-a"), expired = signer_of("node-a");
  const auto id = allocated(lease, 1)[0], late = allocated(expired, 1)[0];
  EXPECT_EQ(try_reject(rejection(lease, id), "node-b"), "fenced");
  expire(expired.key);
  EXPECT_EQ(try_reject(rejection(expired, late)), "fenced");
  EXPECT_EQ(next_nonce(lease.key), 1);
  EXPECT_EQ(next_nonce(expired.key), 1);
}

// Either the create comes second and gets the released nonce, or it comes first and nothing is released.
TEST_F(RejectProtocol, a_release_and_a_create_in_any_order) {
  int released = 0, kept = 0;
  for (const auto& order : all_orders({5, 4})) {
    const auto lease = signer_of("node-a");
    const auto id = allocated(lease, 1)[0];
    const auto next = new_tx(lease.key);
    std::string outcome;
    theatre.play({{a, script_of(reject_statements("node-a", rejection(lease, id)),
                                [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {b, script_of(create_statements("node-a", {{lease, 0}}, {next}))}},
                 order);
    EXPECT_EQ(id_at(lease.key, 0), outcome == "done" ? next.tx_id : id) << theatre.trace();
    EXPECT_EQ(next_nonce(lease.key), outcome == "done" ? 1 : 2) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    released += outcome == "done";
    kept += outcome == "moved";
  }
  EXPECT_EQ(released + kept, 126);
  EXPECT_GT(released, 0);
  EXPECT_GT(kept, 0);
}

TEST_F(RejectProtocol, a_release_and_a_promotion_in_any_order) {
  int released = 0;
  for (const auto& order : all_orders({5, 4})) {
    const auto lease = signer_of("node-a");
    const auto tx = allocated(lease, 2, 1);  // the second one waits
    std::string outcome;
    theatre.play({{a, script_of(reject_statements("node-a", rejection(lease, tx[0])),
                                [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {b, script_of(promote_statements("node-a", {{lease, 1}}))}},
                 order);
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    released += outcome == "done";
  }
  EXPECT_EQ(released, 126) << "the window has one place, so the other transaction never has a nonce first";
}

// Either the claim comes first, and nothing is released, or it finds no transaction.
TEST_F(RejectProtocol, a_release_and_a_claim_in_any_order) {
  int released = 0, claimed = 0;
  for (const auto& order : all_orders({5, 4})) {
    const auto lease = signer_of("node-a");
    const auto id = allocated(lease, 1)[0];
    const auto hash = attempt(lease, id, "refused");
    std::string outcome, claim;
    theatre.play({{a, script_of(reject_statements("node-a", rejection(lease, id)),
                                [&](const Answer& x) { outcome = outcomes(x).front(); })},
                  {b, script_of(claim_statements("node-a", {claim_of(lease, id, hash, hash)}, 60s),
                                [&](const Answer& x) { claim = outcomes(x).front(); })}},
                 order);
    EXPECT_EQ(claim, outcome == "done" ? "moved" : "done") << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    released += outcome == "done";
    claimed += claim == "done";
  }
  EXPECT_EQ(released + claimed, 126);
  EXPECT_GT(released, 0);
  EXPECT_GT(claimed, 0);
}

TEST_F(RejectProtocol, a_release_and_a_takeover_in_any_order) {
  int released = 0, fenced = 0;
  Session taker(db.dsn(), "node-b");
  for (const auto& order : all_orders({5, 3})) {
    const auto lease = signer_of("node-a");
    const auto id = allocated(lease, 1)[0];
    std::string outcome;
    std::int64_t at_takeover = -1;
    theatre.play(
        {{a, script_of(reject_statements("node-a", rejection(lease, id)),
                       [&](const Answer& x) { outcome = outcomes(x).front(); })},
         {taker,
          {statement("expire", kExpire, pg::Params::of(kChain, lease.key.signer)),
           opening(statement("takeover", sql::kAcquireLeases.sql, acquire_params("node-b", {lease.key.signer}))),
           commit([&] { at_takeover = next_nonce(lease.key); })}}},
        order);
    EXPECT_EQ(next_nonce(lease.key), at_takeover) << theatre.trace();
    EXPECT_EQ(next_nonce(lease.key), outcome == "done" ? 0 : 1) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    released += outcome == "done";
    fenced += outcome == "fenced";
  }
  EXPECT_EQ(released + fenced, 56);
  EXPECT_GT(released, 0);
  EXPECT_GT(fenced, 0);
}

// Signing is deterministic: the same payload at the released nonce gives the bytes of the rejected transaction.
TEST_F(RejectProtocol, the_next_transaction_may_have_the_same_bytes) {
  const auto lease = signer_of("node-a");
  const auto id = allocated(lease, 1)[0];
  const auto hash = attempt(lease, id, "refused");
  ASSERT_EQ(try_reject(rejection(lease, id)), "done");
  const auto next = allocated(lease, 1)[0];
  std::string claim;
  theatre.play({{a, script_of(claim_statements("node-a", {claim_of(lease, next, hash, std::nullopt)}, 60s),
                              [&](const Answer& x) { claim = outcomes(x).front(); })}},
               {});
  EXPECT_EQ(claim, "done");
  EXPECT_EQ(admin.value<std::string>("SELECT concat_ws(' ', tx_id, attempt, outcome, claims) FROM tx_attempt"),
            next.to_string() + " 1 2");
  // A hash of a transaction that was not rejected stays its own.
  const auto other = allocated(lease, 1)[0];
  theatre.play({{a, script_of(claim_statements("node-a", {claim_of(lease, other, hash, std::nullopt)}, 60s),
                              [&](const Answer& x) { claim = outcomes(x).front(); })}},
               {});
  EXPECT_EQ(claim, "moved");
}

TEST_F(RejectProtocol, only_what_no_endpoint_has_goes_back_to_allocated) {
  const auto resume = [&](const SignerLease& lease, const Uuid& id) {
    Step step(lease, id, TxState::kStuck, TxState::kAllocated, "funded");
    step.expect_unsent = true;
    std::string out;
    theatre.play(
        {{a, script_of(step_statements("node-a", {step}), [&](const Answer& x) { out = outcomes(x).front(); })}}, {});
    return out;
  };
  const auto stuck = [&](const char* outcome, const char* sub_state) {
    const auto lease = signer_of("node-a");
    const auto id = allocated(lease, 1)[0];
    const auto first = attempt(lease, id, outcome);
    attempt(lease, id, "refused", first);
    set(id, fmt::format("state = 'STUCK', sub_state = '{}'", sub_state));
    return resume(lease, id);
  };
  EXPECT_EQ(stuck("refused", "insufficient_funds"), "done");
  EXPECT_EQ(stuck("unknown", "insufficient_funds"), "moved");
  EXPECT_EQ(stuck("accepted", "insufficient_funds"), "moved");
  EXPECT_EQ(stuck("", "insufficient_funds"), "moved");
  EXPECT_EQ(stuck("refused", "no_receipt"), "moved");
  EXPECT_EQ(stuck("refused", "nonce_taken"), "moved");
  const auto lease = signer_of("node-a");
  EXPECT_THROW(step_statements("node-a", {Step(lease, ids.next(), TxState::kStuck, TxState::kAllocated, "no guard")}),
               Exception);
  EXPECT_THROW(
      step_statements("node-a", {Step(lease, ids.next(), TxState::kAllocated, TxState::kFailedFinal, "no release")}),
      Exception);
}

// Bytes that are sent again may be accepted, so the earlier refusal no longer counts.
TEST_F(RejectProtocol, a_resubmission_withdraws_the_refusal) {
  const auto lease = signer_of("node-a");
  const auto id = allocated(lease, 1)[0];
  attempt(lease, id, "refused");
  set(id, "state = 'STUCK', sub_state = 'invalid', next_resubmit_at = clock_timestamp()");
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto due = co_await claim_resubmits(pool, "node-a", kChain, 60s, 10);
    EXPECT_EQ(due.size(), 1U);
  });
  EXPECT_EQ(admin.value<std::string>("SELECT outcome || ' ' || claims FROM tx_attempt"), "unknown 2");
  EXPECT_EQ(try_reject(rejection(lease, id, TxState::kStuck)), "moved");
}

class MinedAfterRelease : public RejectProtocol {
 protected:
  template <class Body>
  void with(Body body) {
    test::with_pool(db.dsn(), {}, std::move(body));
  }
  std::vector<std::string> found(const std::string& hash) {
    std::vector<std::string> out;
    with([&](pg::Pool& pool) -> awaitable<> { out = co_await find_mined_after_end(pool, kChain, {hash}); });
    return out;
  }
  std::vector<MinedAfterEnd> report(const std::string& hash) {
    std::vector<MinedAfterEnd> out;
    with([&](pg::Pool& pool) -> awaitable<> {
      out = co_await report_mined_after_end(pool, "node-a", kChain, {{hash, 5, hash_of(5)}});
    });
    return out;
  }
  StepOutcome take(const SignerLease& lease, const Uuid& id, const std::string& hash) {
    StepOutcome out = StepOutcome::kFenced;
    with([&](pg::Pool& pool) -> awaitable<> {
      out = co_await record_taker(pool, "node-a", lease, id, TxState::kAllocated, hash);
    });
    return out;
  }
  std::string attempt_at(const std::string& hash) {
    return admin.value<std::string>(
        "SELECT tx_id || ' ' || kind || ' ' || (raw IS NULL) FROM tx_attempt WHERE tx_hash = $1", pg::Params::of(hash));
  }

  const SignerLease lease_ = signer_of("node-a", 7);
  const Uuid id_ = allocated(lease_, 1)[0];
  const std::string hash_ = attempt(lease_, id_, "refused");
};

TEST_F(MinedAfterRelease, is_reported_once) {
  EXPECT_TRUE(found(hash_).empty()) << "it is open";
  ASSERT_EQ(try_reject(rejection(lease_, id_)), "done");
  EXPECT_EQ(found(hash_), std::vector{hash_});
  const auto told = report(hash_);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.front().tx_id, id_);
  EXPECT_EQ(told.front().key, lease_.key);
  EXPECT_EQ(told.front().nonce, 7);
  EXPECT_EQ(told.front().block, 5);
  EXPECT_EQ(ended(id_), "FAILED_FINAL mined_after_end - 7");
  EXPECT_EQ(events(id_), "TxAccepted TxFailed TxMinedAfterEnd");
  EXPECT_TRUE(found(hash_).empty());
  EXPECT_TRUE(report(hash_).empty());
  EXPECT_EQ(broken(lease_.key, 7), "");
}

TEST_F(MinedAfterRelease, is_reported_later_if_another_session_has_locked_it) {
  ASSERT_EQ(try_reject(rejection(lease_, id_)), "done");
  b.must("BEGIN");
  b.must("SELECT FROM tx_ended WHERE tx_id = $1 FOR UPDATE", pg::Params::of(id_));
  EXPECT_TRUE(report(hash_).empty());
  b.must("COMMIT");
  EXPECT_EQ(found(hash_), std::vector{hash_});
  EXPECT_EQ(report(hash_).size(), 1U);
}

TEST_F(MinedAfterRelease, is_no_news_of_what_was_mined_or_of_another_senders_transaction) {
  mine(id_, 5);
  end(id_);
  EXPECT_TRUE(found(hash_).empty()) << "it has its receipt";
  const auto other = allocated(lease_, 1)[0];
  const auto taker = hash_of(900);
  ASSERT_EQ(take(lease_, other, taker), StepOutcome::kDone);
  end(other, "FAILED_FINAL");
  EXPECT_TRUE(found(taker).empty()) << "it is not ours";
}

TEST_F(MinedAfterRelease, is_named_by_the_next_transaction_at_that_nonce) {
  const auto above = allocated(lease_, 1)[0];
  EXPECT_EQ(take(lease_, above, hash_), StepOutcome::kMoved) << "it belongs to a transaction that has its nonce";
  ASSERT_EQ(try_reject(rejection(lease_, above)), "done");
  ASSERT_EQ(try_reject(rejection(lease_, id_)), "done");
  const auto next = allocated(lease_, 1)[0];
  attempt(lease_, next, "accepted");
  ASSERT_EQ(take(lease_, next, hash_), StepOutcome::kDone);
  EXPECT_EQ(attempt_at(hash_), next.to_string() + " external true");
  EXPECT_EQ(take(lease_, next, hash_), StepOutcome::kDone) << "safe to repeat";
  EXPECT_EQ(broken(lease_.key, 7), "");
}

}  // namespace
}  // namespace fencepost::tx
