#include "tx/model/finality.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "evm/finality_rule.hpp"

namespace fencepost::tx {
namespace {

const std::vector<Attempt> kAttempts{{"0xa", AttemptKind::kOriginal},
                                     {"0xc", AttemptKind::kCancel},
                                     {"0xr", AttemptKind::kRecorded},
                                     {"0xe", AttemptKind::kExternal}};

OpenTx open(TxState state = TxState::kTracking) {
  return {.state = state, .nonce = 7, .attempts = kAttempts};
}
OpenTx mined(std::string hash, bool succeeded = true) {
  auto tx = open();
  tx.mined = Inclusion{std::move(hash), 100, "0xb100", succeeded};
  return tx;
}
OpenTx taken() {
  auto tx = open(TxState::kStuck);
  tx.taken_by_foreign = true;
  return tx;
}
OpenTx external(TxState state = TxState::kTracking) {
  return {.state = state, .nonce = 7, .external = true};
}

// Head 120 with 20 confirmations: block 100 is final, 101 is not.
ChainFacts facts(std::int64_t head = 120) {
  return {.head_number = head, .final_number = evm::final_by_depth(head, 20)};
}
ChainFacts canonical(bool yes, std::int64_t head = 120) {
  auto out = facts(head);
  out.mined_is_canonical = yes;
  return out;
}
ChainFacts found(std::string hash, std::int64_t block = 110) {
  auto out = facts();
  out.found = {{std::move(hash), block, "0xb" + std::to_string(block), true}};
  return out;
}
ChainFacts nonces(std::int64_t at_head, std::optional<std::int64_t> at_final = {}, std::size_t own_mined = 0) {
  auto out = facts();
  out.nonce = NonceFacts{at_head, at_final, own_mined};
  return out;
}

TEST(finality, a_receipt_is_stored_first_whatever_its_depth) {
  for (const auto state : {TxState::kAllocated, TxState::kTracking, TxState::kStuck}) {
    for (const auto* hash : {"0xa", "0xc", "0xr"}) {
      for (const std::int64_t block : {50, 110}) {
        const auto decision = decide(open(state), found(hash, block));
        EXPECT_EQ(decision.verdict, Verdict::kMined);
        ASSERT_TRUE(decision.inclusion);
        EXPECT_EQ(decision.inclusion->tx_hash, hash);
        EXPECT_EQ(state_after(state, decision.verdict), TxState::kTracking);
      }
    }
  }
  EXPECT_EQ(decide(taken(), found("0xa")).verdict, Verdict::kMined);
}

TEST(finality, the_stored_receipt_decides_when_its_block_is_final_on_our_branch) {
  struct Case {
    const char* hash;
    bool succeeded;
    Verdict verdict;
    TxState state;
    SubState reason;
  };
  const Case cases[] = {
      {"0xa", true, Verdict::kConfirmed, TxState::kConfirmed, SubState::kNone},
      {"0xr", true, Verdict::kConfirmed, TxState::kConfirmed, SubState::kNone},
      {"0xa", false, Verdict::kReverted, TxState::kFailedFinal, SubState::kReverted},
      {"0xr", false, Verdict::kReverted, TxState::kFailedFinal, SubState::kReverted},
      {"0xc", true, Verdict::kCancelled, TxState::kFailedFinal, SubState::kCancelledByOperator},
      {"0xc", false, Verdict::kCancelled, TxState::kFailedFinal, SubState::kCancelledByOperator},
  };
  for (const auto& c : cases) {
    const auto tx = mined(c.hash, c.succeeded);
    EXPECT_EQ(decide(tx, canonical(true, 119)).verdict, Verdict::kWait) << c.hash;
    const auto decision = decide(tx, canonical(true));
    EXPECT_EQ(decision.verdict, c.verdict) << c.hash;
    EXPECT_EQ(decision.inclusion, tx.mined);
    EXPECT_EQ(state_after(tx.state, decision.verdict), c.state);
    EXPECT_EQ(failure_reason(decision.verdict), c.reason);
  }
}

TEST(finality, missing_facts_decide_nothing) {
  EXPECT_EQ(decide(mined("0xa"), facts()).verdict, Verdict::kWait);
  auto no_final = canonical(true);
  no_final.final_number.reset();
  EXPECT_EQ(decide(mined("0xa"), no_final).verdict, Verdict::kWait);
  EXPECT_EQ(decide(open(), facts()).verdict, Verdict::kWait);
  EXPECT_EQ(decide(taken(), facts()).verdict, Verdict::kWait);
  EXPECT_EQ(decide(taken(), nonces(8)).verdict, Verdict::kWait);
  auto count_without_final = nonces(8, 8);
  count_without_final.final_number.reset();
  EXPECT_EQ(decide(taken(), count_without_final).verdict, Verdict::kWait);
}

TEST(finality, a_final_block_above_our_head_counts_as_the_head) {
  auto ahead = canonical(true, 99);
  ahead.final_number = 110;
  EXPECT_EQ(decide(mined("0xa"), ahead).verdict, Verdict::kWait);
  ahead.head_number = 100;
  EXPECT_EQ(decide(mined("0xa"), ahead).verdict, Verdict::kConfirmed);
}

TEST(finality, a_receipt_on_a_dead_branch_is_withdrawn_or_replaced) {
  EXPECT_EQ(decide(mined("0xa"), canonical(false)).verdict, Verdict::kUnmined);
  auto moved = found("0xa", 104);
  moved.mined_is_canonical = false;
  EXPECT_EQ(decide(mined("0xa"), moved).verdict, Verdict::kMinedElsewhere);
  EXPECT_EQ(decide(mined("0xa"), moved).inclusion, moved.found[0]);
  auto cancelled = found("0xc", 100);
  cancelled.mined_is_canonical = false;
  EXPECT_EQ(decide(mined("0xa"), cancelled).verdict, Verdict::kMinedElsewhere);
  auto foreign = found("0xe", 100);
  foreign.mined_is_canonical = false;
  EXPECT_EQ(decide(mined("0xa"), foreign).verdict, Verdict::kUnmined);
}

TEST(finality, a_receipt_found_again_decides_whether_the_stored_one_is_canonical) {
  EXPECT_EQ(decide(mined("0xa"), found("0xa", 100)).verdict, Verdict::kConfirmed);
  EXPECT_EQ(decide(mined("0xa"), found("0xa", 101)).verdict, Verdict::kMinedElsewhere);
}

TEST(finality, facts_that_contradict_each_other_decide_nothing) {
  auto both = found("0xa", 110);
  both.found.push_back({"0xc", 111, "0xb111", true});
  EXPECT_EQ(decide(open(), both).verdict, Verdict::kWait);
  auto twice = found("0xa", 110);
  twice.found.push_back({"0xa", 111, "0xb111", true});
  EXPECT_EQ(decide(open(), twice).verdict, Verdict::kWait);
  auto dead_yet_seen = found("0xa", 100);
  dead_yet_seen.mined_is_canonical = false;
  EXPECT_EQ(decide(mined("0xa"), dead_yet_seen).verdict, Verdict::kWait);
  auto alive_yet_elsewhere = found("0xc", 101);
  alive_yet_elsewhere.mined_is_canonical = true;
  EXPECT_EQ(decide(mined("0xa"), alive_yet_elsewhere).verdict, Verdict::kWait);
  EXPECT_EQ(decide(taken(), nonces(7, 8)).verdict, Verdict::kWait);
  EXPECT_EQ(decide(open(), found("0xa", 121)).verdict, Verdict::kWait);
}

TEST(finality, a_nonce_taken_by_another_sender_is_stuck_until_that_is_final) {
  for (const auto state : {TxState::kAllocated, TxState::kTracking, TxState::kStuck}) {
    const auto decision = decide(open(state), nonces(8, 8));
    EXPECT_EQ(decision.verdict, Verdict::kStuckForeign);
    EXPECT_EQ(state_after(state, decision.verdict), TxState::kStuck);
  }
  EXPECT_EQ(decide(taken(), nonces(8, 7)).verdict, Verdict::kWait);
  EXPECT_EQ(decide(taken(), nonces(8, 8)).verdict, Verdict::kWait) << "the transaction is not known";
  auto named = nonces(8, 8);
  named.found = found("0xe", 100).found;
  const auto decision = decide(taken(), named);
  EXPECT_EQ(decision.verdict, Verdict::kConsumedElsewhere);
  EXPECT_EQ(decision.inclusion, named.found.front());
  EXPECT_EQ(failure_reason(decision.verdict), SubState::kNonceConsumedElsewhere);
}

TEST(finality, a_transaction_of_another_sender_beside_one_of_ours_decides_nothing) {
  auto mined_too = nonces(8, 8, 1);
  mined_too.found = found("0xe", 100).found;
  EXPECT_EQ(decide(taken(), mined_too).verdict, Verdict::kWait);
  auto listed_too = found("0xe", 100);
  listed_too.listed_block = 100;
  EXPECT_EQ(decide(taken(), listed_too).verdict, Verdict::kWait);
}

TEST(finality, a_known_foreign_hash_is_evidence_by_itself) {
  EXPECT_EQ(decide(open(), found("0xe", 110)).verdict, Verdict::kStuckForeign);
  EXPECT_EQ(decide(taken(), found("0xe", 110)).verdict, Verdict::kWait);
  const auto decision = decide(taken(), found("0xe", 100));
  EXPECT_EQ(decision.verdict, Verdict::kConsumedElsewhere);
  EXPECT_EQ(decision.inclusion->tx_hash, "0xe");
}

TEST(finality, a_receipt_of_ours_off_our_branch_explains_the_count) {
  EXPECT_EQ(decide(open(), nonces(8, 8, 1)).verdict, Verdict::kWait);
  EXPECT_EQ(decide(taken(), nonces(8, 8, 1)).verdict, Verdict::kWait);
}

TEST(finality, a_block_on_our_branch_that_lists_the_transaction_is_a_veto_while_the_receipt_is_missing) {
  for (const auto state : {TxState::kAllocated, TxState::kTracking, TxState::kStuck}) {
    auto chain = nonces(8, 8);
    chain.listed_block = 100;
    EXPECT_EQ(decide(open(state), chain).verdict, Verdict::kWait);
  }
  auto chain = nonces(8, 8);
  chain.listed_block = 100;
  EXPECT_EQ(decide(taken(), chain).verdict, Verdict::kTracking)
      << "still STUCK, although our own transaction took the nonce";
}

TEST(finality, a_receipt_is_stored_although_the_block_was_listed_before) {
  auto chain = found("0xa", 100);
  chain.listed_block = 100;
  EXPECT_EQ(decide(open(), chain).verdict, Verdict::kMined);
}

TEST(finality, a_block_that_lists_the_operators_cancel_is_a_veto_for_an_external_row_too) {
  auto row = external();
  row.attempts = {{"0xc", AttemptKind::kCancel}};
  auto chain = nonces(8, 8);
  EXPECT_EQ(decide(row, chain).verdict, Verdict::kConsumedElsewhere);
  chain.listed_block = 100;
  EXPECT_EQ(decide(row, chain).verdict, Verdict::kWait);
}

TEST(finality, the_nonce_is_free_again_when_the_foreign_transaction_is_gone) {
  const auto decision = decide(taken(), nonces(7, 7));
  EXPECT_EQ(decision.verdict, Verdict::kTracking);
  EXPECT_EQ(state_after(TxState::kStuck, decision.verdict), TxState::kTracking);
}

TEST(finality, stuck_for_another_reason_stays_stuck) {
  EXPECT_EQ(decide(open(TxState::kStuck), nonces(7, 7)).verdict, Verdict::kWait);
}

TEST(finality, an_external_row_ends_when_its_nonce_is_finally_taken) {
  EXPECT_EQ(decide(external(), facts()).verdict, Verdict::kWait);
  EXPECT_EQ(decide(external(), nonces(7, 7)).verdict, Verdict::kWait);
  EXPECT_EQ(decide(external(), nonces(8, 7)).verdict, Verdict::kWait);
  EXPECT_EQ(decide(external(), nonces(8, 8)).verdict, Verdict::kConsumedElsewhere);
  for (const auto state : {TxState::kAllocated, TxState::kStuck}) {
    EXPECT_EQ(decide(external(state), nonces(7, 7)).verdict, Verdict::kWait);
    EXPECT_EQ(decide(external(state), nonces(8, 8)).verdict, Verdict::kTracking);
  }
}

TEST(finality, an_external_row_that_an_operator_filled_ends_as_cancelled) {
  auto row = external();
  row.attempts = {{"0xc", AttemptKind::kCancel}};
  EXPECT_EQ(decide(row, found("0xc", 100)).verdict, Verdict::kMined);
  row.mined = Inclusion{"0xc", 100, "0xb100", true};
  EXPECT_EQ(decide(row, canonical(true)).verdict, Verdict::kCancelled);
}

TEST(finality, a_transaction_that_ended_or_has_no_nonce_waits) {
  for (const auto state : {TxState::kCreated, TxState::kConfirmed, TxState::kFailedFinal}) {
    EXPECT_EQ(decide(open(state), found("0xa")).verdict, Verdict::kWait);
    EXPECT_EQ(decide(open(state), nonces(8, 8)).verdict, Verdict::kWait);
    EXPECT_EQ(state_after(state, Verdict::kWait), state);
  }
}

TEST(finality, a_receipt_of_no_attempt_is_a_bug) {
  const auto code = [](const OpenTx& tx, const ChainFacts& chain) -> std::string {
    try {
      decide(tx, chain);
    } catch (const Exception& e) {
      return e.error().code;
    }
    return "";
  };
  EXPECT_EQ(code(open(), found("0xz")), "unknown_attempt");
  EXPECT_EQ(code(mined("0xz"), canonical(true)), "unknown_attempt");
}

TEST(finality, verdicts_have_their_names) {
  EXPECT_EQ(to_string(Verdict::kWait), "wait");
  EXPECT_EQ(to_string(Verdict::kConsumedElsewhere), "consumed_elsewhere");
  EXPECT_EQ(to_string(Verdict::kTracking), "tracking");
}

}  // namespace
}  // namespace fencepost::tx
