#include "tx/model/finality.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace fencepost::tx {
namespace {

struct VerdictRow {
  Verdict verdict;
  std::string_view name;
  std::optional<TxState> leads_to;  // nullopt: the state stays
  SubState failure;
};

constexpr VerdictRow kVerdicts[] = {
    {Verdict::kWait, "wait", {}, SubState::kNone},
    {Verdict::kMined, "mined", TxState::kTracking, SubState::kNone},
    {Verdict::kMinedElsewhere, "mined_elsewhere", TxState::kTracking, SubState::kNone},
    {Verdict::kUnmined, "unmined", TxState::kTracking, SubState::kNone},
    {Verdict::kConfirmed, "confirmed", TxState::kConfirmed, SubState::kNone},
    {Verdict::kReverted, "reverted", TxState::kFailedFinal, SubState::kReverted},
    {Verdict::kCancelled, "cancelled", TxState::kFailedFinal, SubState::kCancelledByOperator},
    {Verdict::kConsumedElsewhere, "consumed_elsewhere", TxState::kFailedFinal, SubState::kNonceConsumedElsewhere},
    {Verdict::kStuckForeign, "stuck_foreign", TxState::kStuck, SubState::kNone},
    {Verdict::kTracking, "tracking", TxState::kTracking, SubState::kNone},
};

const VerdictRow& row(Verdict verdict) {
  return kVerdicts[std::to_underlying(verdict)];
}

Decision wait(std::string why) {
  return {Verdict::kWait, {}, std::move(why)};
}

AttemptKind kind_of(const OpenTx& tx, const Inclusion& inclusion) {
  const auto found = std::ranges::find(tx.attempts, inclusion.tx_hash, &Attempt::hash);
  if (found == tx.attempts.end()) {
    throw Exception(internal("unknown_attempt", "a receipt belongs to none of the transaction's attempts")
                        .with("txHash", inclusion.tx_hash));
  }
  return found->kind;
}

bool is_final(const ChainFacts& facts, std::int64_t block_number) {
  return facts.final_number && block_number <= std::min(*facts.final_number, facts.head_number);
}

// The stored receipt's block is on the node's own branch.
Decision decide_canonical(const OpenTx& tx, const ChainFacts& facts) {
  const auto& mined = *tx.mined;
  if (!is_final(facts, mined.block_number)) return wait("mined, not final");
  const auto where = fmt::format("block {} is final", mined.block_number);
  switch (kind_of(tx, mined)) {
    case AttemptKind::kOriginal:
    case AttemptKind::kRecorded:
      return mined.succeeded ? Decision{Verdict::kConfirmed, mined, where}
                             : Decision{Verdict::kReverted, mined, where + ", and it reverted there"};
    case AttemptKind::kCancel:
      return {Verdict::kCancelled, mined, where + " and has the operator's cancel"};
    case AttemptKind::kExternal:
      return {Verdict::kConsumedElsewhere, mined, where + " and has a transaction that is not ours"};
  }
  std::unreachable();
}

Decision decide_mined(const OpenTx& tx, const ChainFacts& facts, const std::optional<Inclusion>& now) {
  // A branch contains a nonce once, so a receipt found on it also shows whether the stored one is on it.
  const auto seen =
      now ? std::optional(now->tx_hash == tx.mined->tx_hash && now->block_hash == tx.mined->block_hash) : std::nullopt;
  if (seen && facts.mined_is_canonical && *seen != *facts.mined_is_canonical) {
    return wait("the receipts and the headers contradict each other");
  }
  const auto canonical = seen ? seen : facts.mined_is_canonical;
  if (!canonical) return wait("not known whether the receipt's block is on our branch");
  if (*canonical) return decide_canonical(tx, facts);
  const auto gone = fmt::format("block {} {} is not on our branch", tx.mined->block_number, tx.mined->block_hash);
  if (now && kind_of(tx, *now) != AttemptKind::kExternal) {
    return {Verdict::kMinedElsewhere, now, fmt::format("{}; it is in block {} now", gone, now->block_number)};
  }
  return {Verdict::kUnmined, {}, gone};
}

// What is known about a transaction at this nonce that is not ours. `taken` without `inclusion` follows by exclusion:
// an endpoint says that the nonce is used, and has a receipt for none of our attempts.
struct Foreign {
  std::optional<bool> taken;
  bool final = false;
  std::optional<Inclusion> inclusion;
};

Foreign look_for_foreign(const OpenTx& tx, const ChainFacts& facts, const std::optional<Inclusion>& now) {
  if (now) return {true, is_final(facts, now->block_number), now};
  if (!facts.nonce || facts.nonce->own_mined > 0) return {};
  const auto& nonce = *facts.nonce;
  const bool final = facts.final_number && nonce.at_final && *nonce.at_final > tx.nonce;
  if (final && nonce.at_head <= tx.nonce) return {};  // contradiction: used at the final block, unused at the head
  return {nonce.at_head > tx.nonce, final, {}};
}

Decision decide_external(const OpenTx& tx, const Foreign& foreign) {
  if (!foreign.taken) return wait("not known whether the nonce is taken");
  if (!*foreign.taken) return wait("the nonce is not taken");
  if (tx.state != TxState::kTracking) return {Verdict::kTracking, foreign.inclusion, "the nonce is taken"};
  if (!foreign.final) return wait("taken, not final");
  return {Verdict::kConsumedElsewhere, foreign.inclusion, "another sender's use of the nonce is final, as expected"};
}

Decision decide_unmined(const OpenTx& tx, const Foreign& foreign) {
  if (!foreign.taken) return wait("not known whether the nonce is taken");
  if (!*foreign.taken) {
    if (!tx.taken_by_foreign) return wait("not mined");
    return {Verdict::kTracking, {}, "the transaction that had taken the nonce is no longer on the chain"};
  }
  if (!tx.taken_by_foreign || tx.state != TxState::kStuck) {
    return {Verdict::kStuckForeign, foreign.inclusion, "a transaction that is not ours has taken the nonce"};
  }
  if (!foreign.inclusion) return wait("not known which transaction has taken the nonce");
  if (!foreign.final) return wait("taken by a transaction that is not ours, not final");
  return {Verdict::kConsumedElsewhere, foreign.inclusion,
          "a transaction that is not ours has taken the nonce, and is final"};
}

// A block on the own branch lists one of our attempts, and no endpoint has returned its receipt yet.
Decision decide_listed(const OpenTx& tx, std::int64_t block_number) {
  auto why = fmt::format("block {} has one of our transactions; its receipt is missing", block_number);
  if (tx.taken_by_foreign) return {Verdict::kTracking, {}, std::move(why)};
  return wait(std::move(why));
}

}  // namespace

Decision decide(const OpenTx& tx, const ChainFacts& facts) {
  if (tx.state == TxState::kCreated) return wait("has no nonce");
  if (kManagedTx.terminal(tx.state)) return wait("has ended");
  for (const auto& inclusion : facts.found) kind_of(tx, inclusion);
  const bool differ = std::ranges::any_of(facts.found, [&](const auto& one) { return one != facts.found.front(); });
  if (differ) return wait("receipts of two blocks or attempts at one nonce: not one view of one chain");
  const auto now = facts.found.empty() ? std::nullopt : std::optional(facts.found.front());
  if (now && now->block_number > facts.head_number) return wait("the receipt is above our head");
  if (tx.mined) return decide_mined(tx, facts, now);
  if (now && kind_of(tx, *now) != AttemptKind::kExternal) {
    return {Verdict::kMined, now, fmt::format("receipt in block {}", now->block_number)};
  }
  if (now && (facts.listed_block || (facts.nonce && facts.nonce->own_mined > 0))) {
    return wait("a transaction of another sender and one of ours at one nonce: not one view of one chain");
  }
  if (facts.listed_block) return decide_listed(tx, *facts.listed_block);
  const auto foreign = look_for_foreign(tx, facts, now);
  return tx.external ? decide_external(tx, foreign) : decide_unmined(tx, foreign);
}

TxState state_after(TxState from, Verdict verdict) {
  return row(verdict).leads_to.value_or(from);
}

std::string_view to_string(Verdict verdict) {
  return row(verdict).name;
}

SubState failure_reason(Verdict verdict) {
  return row(verdict).failure;
}

}  // namespace fencepost::tx
