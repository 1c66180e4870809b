// Decides which transaction took a nonce, and whether that is final. The rules are one pure function, decide(): the
// workers gather facts and carry out its decision.
//
// A nonce is used once per branch, by one of these:
//   original, recorded   ours: signed here, or the same payload under a hash that an operator recorded. Final means
//                        CONFIRMED, or FAILED_FINAL `reverted`
//   cancel               the operator's self-transfer. Final means FAILED_FINAL `cancelled_by_operator`
//   external or unknown  another sender's. STUCK as soon as it is seen, FAILED_FINAL `nonce_consumed_elsewhere` when
//                        it is final, TRACKING when a reorg frees the nonce
// No decision ever assigns another nonce.
//
// Guarantees, whatever the facts:
//   - A missing fact decides nothing. Contradictory facts count as missing.
//   - An end with a receipt is decided by the stored receipt, while its block is final and on the node's own branch.
//     A receipt that was just found is only stored.
//   - nonce_consumed_elsewhere needs the transaction that took the nonce: an external attempt that is found on the own
//     branch, in a final block. A count of used nonces makes a transaction STUCK, but never ends it. (An external row
//     has no caller, and there a final count is enough.) A block on the node's own branch that lists one of our
//     attempts is a veto: its receipt is only late.
//
// Requires:
//   - `mined_is_canonical`, `final_number` and the branch of `found` come from one walk along parent hashes from the
//     node's own head. What another endpoint says about canonical blocks does not count.
//   - NonceFacts come from one endpoint, preferably in one batch, in the order written there: then no attempt that the
//     receipts do not show can have raised the count. An endpoint that lags behind the own head may cause a false alarm
//     (STUCK, or no longer STUCK), but never a wrong end.
//   - An attempt has the nonce of the transaction: recording a hash checks its sender and nonce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tx/model/attempt.hpp"
#include "tx/model/state.hpp"
#include "tx/model/sub_state.hpp"

namespace fencepost::tx {

// A transaction at the nonce, signed here or reported by an operator or the chain.
struct Attempt {
  std::string hash;
  AttemptKind kind = AttemptKind::kOriginal;
};

// The block that an attempt is in, according to its receipt.
struct Inclusion {
  std::string tx_hash;
  std::int64_t block_number = 0;
  std::string block_hash;
  bool succeeded = false;

  friend bool operator==(const Inclusion&, const Inclusion&) = default;
};

// The facts that are stored about an open transaction.
struct OpenTx {
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;  // has no meaning while CREATED
  std::vector<Attempt> attempts;
  std::optional<Inclusion> mined;  // only while TRACKING or STUCK; never an external attempt's
  // STUCK because a transaction that is not ours took the nonce (Verdict::kStuckForeign), not for another reason.
  bool taken_by_foreign = false;
  // The row reserves a nonce that another sender of a shared signer uses. The row ends when that use is final.
  bool external = false;
};

// One endpoint's answers about the signer, asked in this order: the counts, then the receipts of all attempts.
struct NonceFacts {
  std::int64_t at_head = 0;  // transaction count, latest
  // Transaction count at ChainFacts::final_number. Set only if the endpoint has the own branch's block at that height,
  // also while it answers for the receipts: then its receipts cover everything up to that block. A count at an earlier
  // block of that branch is as good: counts only grow. Needed only for external rows.
  std::optional<std::int64_t> at_final;
  // How many of our attempts (all but external ones) the endpoint has a receipt for or reports to be in a block, on any
  // branch. An attempt off the node's own branch is not in ChainFacts::found, but it explains the count.
  std::size_t own_mined = 0;
};

struct ChainFacts {
  std::int64_t head_number = 0;  // of the node's own walk
  // The highest block that is final in that walk, by depth or by tag; nullopt: not known now. A number above the head
  // counts as the head.
  std::optional<std::int64_t> final_number;
  // Whether OpenTx::mined's block is on the node's own branch; nullopt: not known now. Needed only when mined.
  std::optional<bool> mined_is_canonical;
  // Receipts of attempts seen now, in blocks that are on the node's own branch.
  std::vector<Inclusion> found;
  // The block on the node's own branch that lists one of our attempts (any but external ones), with or without a
  // receipt. While it is set, our attempt took the nonce, and an endpoint without the receipt is only late.
  std::optional<std::int64_t> listed_block;
  std::optional<NonceFacts> nonce;  // nullopt: not asked, or the endpoint did not answer everything
};

enum class Verdict {
  kWait,               // nothing to do
  kMined,              // store Decision::inclusion; TRACKING, sub state `mined`
  kMinedElsewhere,     // as kMined; replaces the stored receipt, whose block is orphaned, by another block or attempt
  kUnmined,            // the stored receipt's block is orphaned, without a replacement: drop it, TRACKING, rebroadcast
  kConfirmed,          // the stored receipt is final and ours, and the transaction succeeded
  kReverted,           // the stored receipt is final and ours, and the transaction failed
  kCancelled,          // the stored receipt is final and of the operator's cancel, whether that succeeded or failed
  kConsumedElsewhere,  // a final transaction that is not ours took the nonce; Decision::inclusion if known
  kStuckForeign,       // the same, not final or seen for the first time: STUCK, taken_by_foreign
  kTracking,           // taken_by_foreign no longer holds: TRACKING, rebroadcast. External rows: the nonce is taken now
};

struct Decision {
  Verdict verdict = Verdict::kWait;
  std::optional<Inclusion> inclusion;  // the inclusion that the verdict is about, if any
  std::string why;                     // for history and logs

  friend bool operator==(const Decision&, const Decision&) = default;
};

// Returns kWait for terminal and CREATED transactions. Throws Exception `unknown_attempt` when `mined` or `found` has a
// hash that is not among the attempts, which is a bug in the caller.
Decision decide(const OpenTx& tx, const ChainFacts& facts);

// The state after a verdict; `from` when the verdict changes no state. For a verdict that decide() returned in state
// `from`, kManagedTx allows the step.
TxState state_after(TxState from, Verdict verdict);
std::string_view to_string(Verdict verdict);
// The sub state of an end that failed, and the reason of its TxFailed. kNone for verdicts that do not fail.
SubState failure_reason(Verdict verdict);

}  // namespace fencepost::tx
