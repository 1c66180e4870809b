// Tests steps: what a step writes, its guards, and two concurrent writers.
#include <boost/asio/co_spawn.hpp>

#include "outbox/outbox_store.hpp"
#include "tx/store/attempt_store.hpp"
#include "tx/store/protocol_test_support.hpp"
#include "tx/store/step_store.hpp"
#include "tx/store/tx_store.hpp"
#include "tx/store/work_store.hpp"

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

class StepProtocol : public ProtocolTest {
 protected:
  using Outcomes = std::vector<std::string>;

  // New transactions with nonces 0, 1, ….
  std::vector<Uuid> allocated(const SignerLease& lease, int n) {
    std::vector<NewTx> items;
    items.reserve(n);
    for (int i = 0; i < n; ++i) items.push_back(new_tx(lease.key));
    theatre.play({{a, script_of(create_statements("node-a", {{lease, 0}}, items))}}, {});
    std::vector<Uuid> out;
    out.reserve(items.size());
    for (const auto& item : items) out.push_back(item.tx_id);
    return out;
  }

  Outcomes apply(const std::vector<Step>& steps, const std::string& node = "node-a") {
    Outcomes out;
    theatre.play({{a, script_of(step_statements(node, steps), [&](const Answer& x) { out = outcomes(x); })}}, {});
    return out;
  }

  Claim claim_of(const SignerLease& lease, const Uuid& id, std::uint64_t hash,
                 std::optional<std::string> previous = std::nullopt) {
    return {.lease = lease,
            .tx_id = id,
            .previous_hash = std::move(previous),
            .tx_hash = hash_of(hash),
            .raw = Bytes{1, 2},
            .fees = R"({"gasPrice":"1"})"};
  }
  Outcomes claim(const std::vector<Claim>& claims, const std::string& node = "node-a") {
    Outcomes out;
    theatre.play({{a, script_of(claim_statements(node, claims, 60s), [&](const Answer& x) { out = outcomes(x); })}},
                 {});
    return out;
  }

  Step tracking(const SignerLease& lease, const Uuid& id) {
    Step step(lease, id, TxState::kAllocated, TxState::kTracking, "accepted by the chain");
    step.events.emplace_back(TxEvent::kSubmitted, R"({"n":1})");
    return step;
  }

  // A step of a claimed transaction that sets everything that a receipt sets.
  Step mined_step(const SignerLease& lease) {
    const auto id = allocated(lease, 1)[0];
    EXPECT_EQ(claim({claim_of(lease, id, 1)}), Outcomes{"done"});
    auto step = tracking(lease, id);
    step.sub_state = SubState::kMined;
    step.error = "slow";
    step.failed_try = true;
    step.due_in = 0ms;
    step.tx_hash = hash_of(2);
    step.receipt = StoredReceipt{R"({"status":"0x1"})", 12, hash_of(12), true};
    step.announced = AnnouncedBlock{13, hash_of(13)};
    return step;
  }
  // Applies the step, which must be done, and returns the transaction after it.
  ManagedTx after(const Step& step) {
    ManagedTx tx;
    test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
      const auto done = co_await apply_steps(pool, "node-a", {step});
      EXPECT_EQ(done, std::vector{StepOutcome::kDone});
      tx = (co_await find_tx(pool, step.tx_id)).value();
    });
    return tx;
  }

  std::int64_t first_unmined(const SignerLease& lease) {
    return admin.value<std::int64_t>("SELECT first_unmined FROM signer_nonce_cursor WHERE signer = $1",
                                     pg::Params::of(lease.key.signer));
  }
  // The attempts and their outcomes, such as "1:01/accepted 2:…".
  std::string attempts(const Uuid& id) {
    return admin.value<std::string>(
        "SELECT coalesce(string_agg(attempt || ':' || right(tx_hash, 2) || '/' || coalesce(outcome, '-'), ' ' "
        "ORDER BY attempt), '') FROM tx_attempt WHERE tx_id = $1",
        pg::Params::of(id));
  }

  Theatre theatre{db.dsn()};
  Session a{db.dsn(), "node-a"};
  Session b{db.dsn(), "node-a"};
};

TEST_F(StepProtocol, writes_every_member_that_is_set) {
  const auto lease = signer_of("node-a");
  const auto tx = after(mined_step(lease));
  EXPECT_EQ(tx.state, TxState::kTracking);
  EXPECT_EQ(tx.sub_state, "mined");
  EXPECT_EQ(tx.error_message, "slow");
  EXPECT_EQ(tx.retry_count, 1);
  EXPECT_EQ(tx.tx_hash, hash_of(2));
  EXPECT_EQ(tx.receipt_block, 12);
  EXPECT_EQ(tx.receipt_hash, hash_of(12));
  EXPECT_EQ(tx.receipt.value().at("status").as_string(), "0x1");
  EXPECT_TRUE(tx.first_submitted_at.has_value());
  EXPECT_FALSE(tx.confirmed_at);
}

TEST_F(StepProtocol, leaves_members_that_are_not_set_unchanged) {
  const auto lease = signer_of("node-a");
  const auto before = after(mined_step(lease));
  const auto same = after(Step(lease, before.tx_id, TxState::kTracking, TxState::kTracking, "looked"));
  EXPECT_EQ(same.sub_state, before.sub_state);
  EXPECT_EQ(same.error_message, before.error_message);
  EXPECT_EQ(same.retry_count, before.retry_count);
  EXPECT_EQ(same.next_resubmit_at, before.next_resubmit_at);
  EXPECT_EQ(same.tx_hash, before.tx_hash);
  EXPECT_EQ(same.receipt, before.receipt);
  EXPECT_EQ(same.receipt_hash, before.receipt_hash);
}

TEST_F(StepProtocol, clears_the_receipt_that_a_reorg_has_undone) {
  const auto lease = signer_of("node-a");
  const auto mined = after(mined_step(lease));
  Step back(lease, mined.tx_id, TxState::kTracking, TxState::kTracking, "reorg");
  back.sub_state = SubState::kNone;
  back.error = "";
  back.reset_tries = true;
  back.drop_receipt = true;
  back.retract = true;
  const auto tx = after(back);
  EXPECT_FALSE(tx.sub_state);
  EXPECT_FALSE(tx.error_message);
  EXPECT_EQ(tx.retry_count, 0);
  EXPECT_FALSE(tx.mined());
  EXPECT_FALSE(tx.receipt);
  EXPECT_FALSE(tx.receipt_hash);
  EXPECT_EQ(admin.value<std::string>("SELECT concat_ws(' ', announced_block, announced_hash, withdrawn) FROM tx_open"),
            "t");
}

TEST_F(StepProtocol, an_end_is_written_with_its_time_and_its_confirmations) {
  const auto lease = signer_of("node-a");
  const auto mined = after(mined_step(lease));
  Step end(lease, mined.tx_id, TxState::kTracking, TxState::kConfirmed, "final");
  end.confirmations = R"([{"number":14}])";
  const auto tx = after(end);
  EXPECT_EQ(tx.state, TxState::kConfirmed);
  EXPECT_TRUE(tx.confirmed_at.has_value());
  EXPECT_EQ(tx.confirmations.value().as_array().size(), 1u);
  EXPECT_EQ(tx.receipt, mined.receipt);
  EXPECT_EQ(tx.receipt_block, 12);
  EXPECT_EQ(tx.tx_hash, mined.tx_hash);
  EXPECT_EQ(tx.first_submitted_at, mined.first_submitted_at);
  EXPECT_EQ(count_open("true", lease.key), 0);
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(StepProtocol, steps_that_end_and_steps_that_do_not_share_a_batch) {
  const auto lease = signer_of("node-a"), lost = signer_of("node-b");
  const auto tx = allocated(lease, 4);
  for (const auto& id : {tx[0], tx[2]}) mine(id, 12);
  const auto final = [&](const Uuid& id) { return Step(lease, id, TxState::kTracking, TxState::kConfirmed, "final"); };
  auto late = final(tx[2]);
  late.expect_receipt_hash = hash_of(99);
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto outcomes = co_await apply_steps(
        pool, "node-a", {final(tx[0]), tracking(lease, tx[1]), late, tracking(lost, tx[3]), tracking(lease, tx[3])});
    EXPECT_EQ(outcomes, (std::vector{StepOutcome::kDone, StepOutcome::kDone, StepOutcome::kMoved, StepOutcome::kFenced,
                                     StepOutcome::kDone}));
  });
  EXPECT_EQ(state_of(tx[0]), "CONFIRMED");
  EXPECT_EQ(state_of(tx[1]), "TRACKING");
  EXPECT_EQ(state_of(tx[2]), "TRACKING");
  EXPECT_EQ(history(tx[0]), "accepted|ALLOCATED final|CONFIRMED");
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(StepProtocol, a_step_that_the_lifecycle_does_not_allow_throws) {
  const auto lease = signer_of("node-a");
  EXPECT_THROW(step_statements("node-a", {Step(lease, ids.next(), TxState::kConfirmed, TxState::kTracking, "no")}),
               Exception);
}

TEST_F(StepProtocol, history_and_events_come_with_the_step_and_in_its_order) {
  const auto lease = signer_of("node-a");
  const auto tx = allocated(lease, 2);
  auto first = tracking(lease, tx[0]);
  first.events.emplace_back(TxEvent::kReceiptUpdated, "{}");
  auto second = tracking(lease, tx[1]);
  second.quiet = true;
  second.events = {{TxEvent::kReceiptUpdated, "{}"}, {TxEvent::kSubmitted, "{}"}};
  EXPECT_EQ(apply({second, first}), (Outcomes{"done", "done"}));
  EXPECT_EQ(history(tx[0]), "accepted|ALLOCATED accepted by the chain|TRACKING");
  EXPECT_EQ(events(tx[0]), "TxAccepted TxSubmitted TxReceiptUpdated");
  EXPECT_EQ(history(tx[1]), "accepted|ALLOCATED");
  EXPECT_EQ(events(tx[1]), "TxAccepted TxReceiptUpdated TxSubmitted");

  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto steps = co_await outbox::history_of(pool, "tx/" + tx[0].to_string(), 10);
    EXPECT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[1].from_state, "ALLOCATED");
    EXPECT_EQ(steps[1].to_state, "TRACKING");
    EXPECT_EQ(steps[1].node, "node-a");
    EXPECT_EQ(steps[1].fencing_token, 1);
  });
}

TEST_F(StepProtocol, the_second_writer_gets_moved_and_writes_nothing) {
  const auto lease = signer_of("node-a");
  const auto tx = allocated(lease, 2);
  EXPECT_EQ(apply({tracking(lease, tx[0])}), Outcomes{"done"});
  auto late = tracking(lease, tx[0]);
  late.error = "late";
  EXPECT_EQ(apply({late, tracking(lease, tx[1])}), (Outcomes{"moved", "done"}));
  EXPECT_EQ(history(tx[0]), "accepted|ALLOCATED accepted by the chain|TRACKING");
  EXPECT_EQ(events(tx[0]), "TxAccepted TxSubmitted");
  EXPECT_EQ(count("error_message IS NOT NULL", lease.key), 0);
}

TEST_F(StepProtocol, a_step_can_require_the_receipt_that_it_has_read) {
  const auto lease = signer_of("node-a");
  const auto id = allocated(lease, 1)[0];
  claim({claim_of(lease, id, 1)});
  auto mined = tracking(lease, id);
  mined.expect_receipt_hash = "";
  mined.receipt = StoredReceipt{"{}", 5, hash_of(5)};
  EXPECT_EQ(apply({mined}), Outcomes{"done"});

  Step next(lease, id, TxState::kTracking, TxState::kTracking, "again");
  next.attempt_outcome = AttemptOutcome::kRefused;
  next.events.emplace_back(TxEvent::kReceiptUpdated, "{}");
  for (const auto& wrong : {std::string(), hash_of(6)}) {
    next.expect_receipt_hash = wrong;
    EXPECT_EQ(apply({next}), Outcomes{"moved"});
  }
  EXPECT_EQ(events(id), "TxAccepted TxSubmitted");
  EXPECT_EQ(attempts(id), "1:01/-");  // a step that was not applied sets no outcome either
  next.expect_receipt_hash = hash_of(5);
  EXPECT_EQ(apply({next}), Outcomes{"done"});
  EXPECT_EQ(attempts(id), "1:01/refused");
}

TEST_F(StepProtocol, a_fenced_step_fails_alone_and_writes_nothing) {
  const auto mine = signer_of("node-a"), expired = signer_of("node-a"), lost = signer_of("node-a");
  const auto m = allocated(mine, 1)[0], e = allocated(expired, 1)[0], l = allocated(lost, 1)[0];
  claim({claim_of(expired, e, 1), claim_of(lost, l, 2)});
  expire(expired.key);
  admin.must("UPDATE signer_lease SET owner_node = 'node-b', fencing_token = 2 WHERE signer = $1",
             pg::Params::of(lost.key.signer));
  std::vector<Step> steps{tracking(lost, l), tracking(mine, m), tracking(expired, e)};
  for (auto& step : steps) step.attempt_outcome = AttemptOutcome::kAccepted;
  EXPECT_EQ(apply(steps), (Outcomes{"fenced", "done", "fenced"}));
  for (const auto& id : {l, e}) {
    EXPECT_EQ(state_of(id), "ALLOCATED");
    EXPECT_EQ(history(id), "accepted|ALLOCATED");
    EXPECT_EQ(events(id), "TxAccepted");
    EXPECT_FALSE(attempts(id).contains("accepted"));
  }
}

// The lease belongs to a signer, and the transaction must belong to the same signer.
TEST_F(StepProtocol, a_lease_does_not_allow_writes_for_another_signer) {
  const auto mine = signer_of("node-a");
  const auto other = signer_of("node-b");
  theatre.play({{a, script_of(create_statements("node-b", {{other, 0}}, {new_tx(other.key)}))}}, {});
  const auto id = admin.value<Uuid>("SELECT tx_id FROM managed_tx WHERE signer = $1", pg::Params::of(other.key.signer));
  EXPECT_EQ(apply({tracking(mine, id)}), Outcomes{"moved"});
  EXPECT_EQ(claim({claim_of(mine, id, 1)}), Outcomes{"moved"});
  EXPECT_EQ(state_of(id), "ALLOCATED");
  EXPECT_EQ(attempts(id), "");
}

TEST_F(StepProtocol, the_outcome_is_stored_for_the_current_attempt) {
  const auto lease = signer_of("node-a");
  const auto id = allocated(lease, 1)[0];
  claim({claim_of(lease, id, 1)});
  auto step = tracking(lease, id);
  step.attempt_outcome = AttemptOutcome::kUnknown;
  step.error = "timeout";
  EXPECT_EQ(apply({step}), Outcomes{"done"});
  EXPECT_EQ(attempts(id), "1:01/unknown");
  EXPECT_EQ(admin.value<std::string>("SELECT message FROM tx_attempt"), "timeout");
}

TEST_F(StepProtocol, a_takeover_and_a_step_in_any_order) {
  int done = 0, fenced = 0;
  Session taker(db.dsn(), "node-b");
  for (const auto& order : all_orders({4, 3})) {
    const auto lease = signer_of("node-a");
    const auto id = allocated(lease, 1)[0];
    std::string outcome;
    std::string at_takeover;
    theatre.play(
        {{a, script_of(step_statements("node-a", {tracking(lease, id)}),
                       [&](const Answer& x) { outcome = outcomes(x).front(); })},
         {taker,
          {statement("expire", kExpire, pg::Params::of(kChain, lease.key.signer)),
           opening(statement("takeover", sql::kAcquireLeases.sql, acquire_params("node-b", {lease.key.signer}))),
           commit([&] { at_takeover = state_of(id); })}}},
        order);
    EXPECT_EQ(state_of(id), at_takeover) << theatre.trace();
    EXPECT_EQ(state_of(id), outcome == "done" ? "TRACKING" : "ALLOCATED") << theatre.trace();
    EXPECT_EQ(events(id), outcome == "done" ? "TxAccepted TxSubmitted" : "TxAccepted") << theatre.trace();
    done += outcome == "done";
    fenced += outcome == "fenced";
  }
  EXPECT_EQ(done + fenced, 35);
  EXPECT_GT(done, 0);
  EXPECT_GT(fenced, 0);
}

TEST_F(StepProtocol, of_two_writers_with_the_same_step_one_succeeds) {
  for (const auto& order : all_orders({4, 4})) {
    const auto lease = signer_of("node-a");
    const auto tx = allocated(lease, 2);
    std::vector<Outcomes> got(2);
    const auto script = [&](std::vector<Step> steps, Outcomes& out) {
      return script_of(step_statements("node-a", steps), [&out](const Answer& x) { out = outcomes(x); });
    };
    theatre.play({{a, script({tracking(lease, tx[0]), tracking(lease, tx[1])}, got[0])},
                  {b, script({tracking(lease, tx[1]), tracking(lease, tx[0])}, got[1])}},
                 order);
    const Outcomes done{"done", "done"}, moved{"moved", "moved"};
    EXPECT_TRUE((got[0] == done && got[1] == moved) || (got[0] == moved && got[1] == done)) << theatre.trace();
    for (const auto& id : tx) EXPECT_EQ(events(id), "TxAccepted TxSubmitted") << theatre.trace();
  }
}

// The original was mined before the operator's cancel, and its block was orphaned: the cancel is broadcast again.
TEST_F(StepProtocol, dropping_a_receipt_makes_the_newest_attempt_current) {
  const auto lease = signer_of("node-a");
  const auto id = allocated(lease, 1)[0];
  ASSERT_EQ(claim({claim_of(lease, id, 1)}), Outcomes{"done"});
  ASSERT_EQ(claim({claim_of(lease, id, 2, hash_of(1))}), Outcomes{"done"});
  Step mined(lease, id, TxState::kAllocated, TxState::kTracking, "mined");
  mined.tx_hash = hash_of(1);
  mined.receipt = StoredReceipt{R"({"status":"0x1"})", 12, hash_of(12), true};
  mined.attempt_outcome = AttemptOutcome::kAccepted;
  ASSERT_EQ(apply({mined}), Outcomes{"done"});
  EXPECT_EQ(attempts(id), "1:01/accepted 2:02/-");
  Step gone(lease, id, TxState::kTracking, TxState::kTracking, "reorged");
  gone.drop_receipt = true;
  ASSERT_EQ(apply({gone}), Outcomes{"done"});
  EXPECT_EQ(admin.value<std::string>("SELECT tx_hash FROM tx_open WHERE tx_id = $1", pg::Params::of(id)), hash_of(2));
}

// Workers read from first_unmined up: a transaction below it would never be broadcast again.
TEST_F(StepProtocol, a_receipt_that_is_taken_back_lowers_the_first_unmined_nonce) {
  const auto lease = signer_of("node-a");
  const auto tx = allocated(lease, 2);
  claim({claim_of(lease, tx[0], 1), claim_of(lease, tx[1], 2)});
  for (const auto& id : tx) mine(id, 12);
  allocated(lease, 1);
  EXPECT_EQ(first_unmined(lease), 2);
  Step gone(lease, tx[1], TxState::kTracking, TxState::kTracking, "reorged");
  gone.drop_receipt = true;
  gone.due_in = 0ms;
  ASSERT_EQ(apply({gone}), Outcomes{"done"});
  EXPECT_EQ(first_unmined(lease), 1);
  EXPECT_EQ(broken(lease.key), "");
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto due = co_await claim_resubmits(pool, "node-a", kChain, 60s, 10);
    EXPECT_EQ(due.size(), 1u);
    EXPECT_EQ(due.at(0).tx_id, tx[1]);
  });
}

TEST_F(StepProtocol, a_receipt_is_taken_back_and_nonces_are_assigned_in_any_order) {
  for (const auto& order : all_orders({5, 4})) {
    const auto lease = signer_of("node-a");
    const auto id = allocated(lease, 1)[0];
    mine(id, 12);
    Step gone(lease, id, TxState::kTracking, TxState::kTracking, "reorged");
    gone.drop_receipt = true;
    Outcomes dropped, created;
    theatre.play({{a, script_of(step_statements("node-a", {gone}), [&](const Answer& x) { dropped = outcomes(x); })},
                  {b, script_of(create_statements("node-a", {{lease, 0}}, {new_tx(lease.key)}),
                                [&](const Answer& x) { created = outcomes(x); })}},
                 order);
    EXPECT_EQ(dropped, Outcomes{"done"}) << theatre.trace();
    EXPECT_EQ(created, Outcomes{"created"}) << theatre.trace();
    EXPECT_EQ(first_unmined(lease), 0) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
  }
}

// A claim of the same bytes is the same attempt, and returns how often these bytes were claimed.
TEST_F(StepProtocol, a_claim_returns_how_often_these_bytes_were_claimed) {
  const auto lease = signer_of("node-a");
  const auto id = allocated(lease, 1)[0];
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto claims_of = [&](Claim claim) -> awaitable<std::int64_t> {
      const auto results = co_await claim_attempts(pool, "node-a", {std::move(claim)}, 60s);
      EXPECT_EQ(results.at(0).outcome, StepOutcome::kDone);
      co_return results.at(0).claims;
    };
    EXPECT_EQ(co_await claims_of(claim_of(lease, id, 1)), 1);
    EXPECT_EQ(co_await claims_of(claim_of(lease, id, 2, hash_of(1))), 1);
    EXPECT_EQ(co_await claims_of(claim_of(lease, id, 1, hash_of(2))), 2);
  });
  EXPECT_EQ(attempts(id), "2:02/- 3:01/-");  // the first attempt is the newest again
}

// Two writers list the same transactions in opposite order, and a third session makes both wait.
TEST_F(StepProtocol, writers_in_opposite_order_do_not_deadlock) {
  const auto one = signer_of("node-a"), two = signer_of("node-a");
  const auto x = allocated(one, 2), y = allocated(two, 2);
  const std::vector<Step> there{tracking(one, x[0]), tracking(one, x[1]), tracking(two, y[0]), tracking(two, y[1])};
  const std::vector<Step> back(there.rbegin(), there.rend());
  Session holder(db.dsn(), "node-a");
  for (const auto& held : {x[0], x[1], y[0], y[1]}) {
    lock(holder, held);
    const auto first = step_statements("node-a", there), second = step_statements("node-a", back);
    for (auto* session : {&a, &b}) {
      const auto& batch = session == &a ? first : second;
      session->must("BEGIN");
      session->must(batch.entries()[0].statement->sql, batch.entries()[0].params);
      session->send(batch.entries()[1].statement->sql, batch.entries()[1].params);
      ASSERT_FALSE(theatre.settled(*session));
    }
    holder.must("COMMIT");
    EXPECT_TRUE(a.take().ok());
    EXPECT_FALSE(theatre.settled(b));
    a.must("ROLLBACK");
    EXPECT_TRUE(b.take().ok());
    b.must("ROLLBACK");
  }
}

// Timers are written without the fence and without its lock order, so they must never wait while they hold a lock.
TEST_F(StepProtocol, timers_do_not_deadlock_with_steps) {
  const auto lease = signer_of("node-a");
  const auto tx = allocated(lease, 2);
  // Make the order of the rows in the table differ from the order of the nonces.
  set(tx[0], "nonce = 5");
  set(tx[1], "nonce = 4");
  const auto step = step_statements("node-a", {tracking(lease, tx[0]), tracking(lease, tx[1])});
  struct Timer {
    const pg::Statement& statement;
    pg::Params params;
  };
  const std::vector<Timer> timers{
      {sql::kNoteChecks, pg::Params::of(tx)},
      {sql::kMakeDue, pg::Params::of(kChain, std::vector{lease.key.signer})},
  };
  Session holder(db.dsn(), "node-a");
  for (const auto& timer : timers) {
    lock(holder, tx[1]);
    a.must("BEGIN");
    a.must(step.entries()[0].statement->sql, step.entries()[0].params);
    a.send(step.entries()[1].statement->sql, step.entries()[1].params);
    ASSERT_FALSE(theatre.settled(a));
    b.send(timer.statement.sql, timer.params);
    theatre.settled(b);
    holder.must("COMMIT");
    EXPECT_EQ(a.take().sqlstate, "") << timer.statement.name;
    a.must("ROLLBACK");
    EXPECT_EQ(b.take().sqlstate, "") << timer.statement.name;
  }
}

TEST_F(StepProtocol, a_claim_stores_the_attempt_before_its_broadcast) {
  const auto lease = signer_of("node-a");
  const auto tx = allocated(lease, 2);
  EXPECT_EQ(claim({claim_of(lease, tx[1], 2), claim_of(lease, tx[0], 1)}), (Outcomes{"done", "done"}));
  EXPECT_EQ(attempts(tx[0]), "1:01/-");
  EXPECT_EQ(attempts(tx[1]), "1:02/-");
  EXPECT_EQ(count("tx_hash IS NOT NULL AND first_submitted_at IS NOT NULL AND last_submit_at IS NOT NULL AND "
                  "next_resubmit_at > clock_timestamp() + interval '50 s' AND state = 'ALLOCATED'",
                  lease.key),
            2);
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto list = co_await list_attempts(pool, tx[0]);
    EXPECT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].tx_hash, hash_of(1));
    EXPECT_EQ(list[0].kind, AttemptKind::kOriginal);
    EXPECT_EQ(list[0].fees.value().at("gasPrice").as_string(), "1");
  });
}

TEST_F(StepProtocol, a_claim_fails_if_another_attempt_was_signed_since) {
  const auto lease = signer_of("node-a");
  const auto id = allocated(lease, 1)[0];
  EXPECT_EQ(claim({claim_of(lease, id, 1, hash_of(9))}), Outcomes{"moved"});
  EXPECT_EQ(claim({claim_of(lease, id, 1)}), Outcomes{"done"});
  EXPECT_EQ(claim({claim_of(lease, id, 2)}), Outcomes{"moved"});
  EXPECT_EQ(claim({claim_of(lease, id, 2, hash_of(1))}), Outcomes{"done"});
  EXPECT_EQ(attempts(id), "1:01/- 2:02/-");
  auto wrong_state = claim_of(lease, id, 3, hash_of(2));
  wrong_state.from = TxState::kStuck;
  EXPECT_EQ(claim({wrong_state}), Outcomes{"moved"});
  expire(lease.key);
  EXPECT_EQ(claim({claim_of(lease, id, 3, hash_of(2))}), Outcomes{"fenced"});
  EXPECT_EQ(attempts(id), "1:01/- 2:02/-");
}

TEST_F(StepProtocol, a_mined_transaction_is_not_signed_again) {
  const auto lease = signer_of("node-a");
  const auto id = allocated(lease, 1)[0];
  claim({claim_of(lease, id, 1)});
  mine(id, 1);
  set(id, "state = 'ALLOCATED'");
  EXPECT_EQ(claim({claim_of(lease, id, 2, hash_of(1))}), Outcomes{"moved"});
}

// Signing is deterministic: the same fees give the same transaction, which must not fail the whole batch.
TEST_F(StepProtocol, signing_the_same_again_is_the_same_attempt) {
  const auto lease = signer_of("node-a");
  const auto tx = allocated(lease, 2);
  claim({claim_of(lease, tx[0], 1)});
  admin.must("UPDATE tx_attempt SET outcome = 'refused', message = 'fee too low'");
  EXPECT_EQ(claim({claim_of(lease, tx[0], 1, hash_of(1)), claim_of(lease, tx[1], 2)}), (Outcomes{"done", "done"}));
  EXPECT_EQ(attempts(tx[0]), "1:01/-");
  // A hash of another transaction is refused, without effect on the rest of the batch.
  EXPECT_EQ(claim({claim_of(lease, tx[0], 2, hash_of(1)), claim_of(lease, tx[1], 3, hash_of(2))}),
            (Outcomes{"moved", "done"}));
  EXPECT_EQ(attempts(tx[0]), "1:01/-");
  EXPECT_EQ(attempts(tx[1]), "1:02/- 2:03/-");
}

TEST_F(StepProtocol, of_two_claims_of_the_same_transaction_one_succeeds) {
  std::uint64_t hash = 1;
  for (const auto& order : all_orders({4, 4})) {
    const auto lease = signer_of("node-a");
    const auto id = allocated(lease, 1)[0];
    std::vector<Outcomes> got(2);
    hash += 2;
    theatre.play({{a, script_of(claim_statements("node-a", {claim_of(lease, id, hash)}, 60s),
                                [&](const Answer& x) { got[0] = outcomes(x); })},
                  {b, script_of(claim_statements("node-a", {claim_of(lease, id, hash + 1)}, 60s),
                                [&](const Answer& x) { got[1] = outcomes(x); })}},
                 order);
    std::ranges::sort(got);
    EXPECT_EQ(got, (std::vector<Outcomes>{{"done"}, {"moved"}})) << theatre.trace();
  }
}

// Both nodes find the same due rows. A lock on one row ensures that both have read before either writes.
TEST_F(StepProtocol, a_rebroadcast_is_claimed_by_one_of_two_nodes) {
  const auto lease = signer_of("node-a");
  const auto tx = allocated(lease, 3);
  std::vector<Claim> claims;
  std::vector<Step> steps;
  for (std::size_t i = 0; i < tx.size(); ++i) {
    claims.push_back(claim_of(lease, tx[i], i + 1));
    steps.push_back(tracking(lease, tx[i]));
  }
  claim(claims);
  apply(steps);
  for (const auto& id : tx) set(id, "next_resubmit_at = clock_timestamp()");
  lock(b, tx[0]);

  std::vector<std::string> claimed;
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto executor = co_await this_executor();
    std::vector<std::shared_ptr<Completion<bool>>> done;
    for (int i = 0; i < 2; ++i) {
      done.push_back(std::make_shared<Completion<bool>>(executor));
      asio::co_spawn(
          executor, claim_resubmits(pool, "node-a", kChain, 60s, 10),
          [&claimed, told = done.back()](const std::exception_ptr& failure, const std::vector<Resubmit>& got) {
            EXPECT_FALSE(failure);
            for (const auto& one : got) {
              EXPECT_EQ(one.raw, "0x0102");
              claimed.push_back(one.tx_hash);
            }
            told->complete(true);
          });
    }
    asio::steady_timer pause(executor);
    while (admin.value<std::int64_t>("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'test' AND "
                                     "cardinality(pg_blocking_pids(pid)) > 0") < 2) {
      pause.expires_after(5ms);
      co_await pause.async_wait(asio::use_awaitable);
    }
    b.must("COMMIT");
    for (const auto& one : done) co_await one->wait();
  });
  EXPECT_EQ(claimed, (std::vector<std::string>{hash_of(1), hash_of(2), hash_of(3)}));  // once, in nonce order
}

}  // namespace
}  // namespace fencepost::tx
