// Steps out of STUCK: which of them are allowed, when the time until STUCK begins anew, and what consumers are told.
#include "tx/store/operator_store.hpp"
#include "tx/store/protocol_test_support.hpp"
#include "tx/store/step_store.hpp"

namespace fencepost::tx {
namespace {

class ResumeStore : public ProtocolTest {
 protected:
  // A transaction that is STUCK for that reason since an hour.
  Uuid stuck(const std::string& sub_state) {
    const auto item = new_tx(lease.key);
    test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
      co_await create_batch(pool, "node-a", {{lease, 0}}, {item});
    });
    set(item.tx_id, "state = 'STUCK', sub_state = '" + sub_state +
                        "', watched_since = clock_timestamp() - interval '1 h', next_resubmit_at = NULL");
    return item.tx_id;
  }
  void attempt(const Uuid& id, std::uint64_t hash, const std::string& outcome) {
    admin.must(
        "INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, outcome, fencing_token) "
        "VALUES ($1, $2, $3, 1, 'original', '\\x0a'::bytea, $4, 1)",
        pg::Params::of(kChain, hash_of(hash), id, outcome));
    set(id, "tx_hash = '" + hash_of(hash) + "'");
  }
  StepOutcome resume(const Uuid& id) {
    Step step(lease, id, TxState::kStuck, TxState::kAllocated, "the cause is gone");
    step.expect_unsent = true;
    step.sub_state = SubState::kNone;
    step.due_in = std::chrono::milliseconds(0);
    step.events.emplace_back(TxEvent::kResumed, resumed_json(lease.key, id, 0, step.to, step.why));
    auto outcome = StepOutcome::kFenced;
    test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
      std::vector<Step> one{step};
      outcome = (co_await apply_steps(pool, "node-a", one)).front();
    });
    return outcome;
  }
  bool watched_anew(const Uuid& id) {
    return admin.value<bool>(
        "SELECT watched_since > clock_timestamp() - interval '1 min' FROM tx_open WHERE tx_id = $1",
        pg::Params::of(id));
  }
  std::string told(const Uuid& id) {
    return admin.value<std::string>(
        "SELECT coalesce(string_agg(data ->> 'state' || ': ' || (data ->> 'detail'), ', '), '') FROM event "
        "WHERE type = 'TxResumed' AND subject = $1",
        pg::Params::of("tx/" + id.to_string()));
  }

  SignerLease lease = signer_of("node-a");
};

TEST_F(ResumeStore, a_transaction_that_was_never_signed_goes_back_and_its_time_begins_anew) {
  const auto id = stuck("fees_unknown");
  EXPECT_EQ(resume(id), StepOutcome::kDone);
  EXPECT_EQ(count_open("state = 'ALLOCATED' AND sub_state IS NULL AND first_submitted_at IS NULL", lease.key), 1);
  EXPECT_TRUE(watched_anew(id));
  EXPECT_EQ(told(id), "ALLOCATED: the cause is gone");
  EXPECT_EQ(resume(id), StepOutcome::kMoved) << "only once";
  EXPECT_EQ(count_events("TxResumed"), 1);
}

TEST_F(ResumeStore, a_transaction_goes_back_only_if_every_attempt_was_refused) {
  const auto refused = stuck("transient");
  attempt(refused, 1, "refused");
  EXPECT_EQ(resume(refused), StepOutcome::kDone);
  const auto unknown = stuck("transient");
  attempt(unknown, 2, "unknown");
  EXPECT_EQ(resume(unknown), StepOutcome::kMoved);
  for (const auto* reason : {"no_receipt", "nonce_taken", "gap"}) {
    const auto id = stuck(reason);
    EXPECT_EQ(resume(id), StepOutcome::kMoved) << reason;
    EXPECT_EQ(state_of(id), "STUCK");
    EXPECT_FALSE(watched_anew(id));
  }
  EXPECT_EQ(count_events("TxResumed"), 1);
}

TEST_F(ResumeStore, what_an_operator_takes_out_of_stuck_is_announced) {
  const auto id = stuck("no_receipt");
  attempt(id, 1, "unknown");
  const OperatorAct act{lease, id, "rebroadcast", "the endpoint is back", "ops"};
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    EXPECT_EQ(co_await rebroadcast_now(pool, "node-a", act, TxState::kStuck), StepOutcome::kDone);
    EXPECT_EQ(told(id), "TRACKING: rebroadcast: the endpoint is back; by ops");
    EXPECT_TRUE(watched_anew(id));
    // It is not STUCK now: there is nothing to announce.
    EXPECT_EQ(co_await rebroadcast_now(pool, "node-a", act, TxState::kTracking), StepOutcome::kDone);
    EXPECT_EQ(count_events("TxResumed"), 1);
    set(id, "state = 'STUCK'");
    const OperatorAct record{lease, id, "record_hash", "sent by hand", "ops"};
    EXPECT_EQ(co_await record_attempt(pool, "node-a", record, TxState::kStuck, hash_of(9)), StepOutcome::kDone);
    EXPECT_EQ(count_events("TxResumed"), 2);
  });
}

}  // namespace
}  // namespace fencepost::tx
