// Who took a nonce, and is that final? The rules by which a transaction's life goes on, as one pure function: the
// workers gather facts and carry out what it says.
//
// A nonce is used once per branch, by one of these:
//   original, recorded   ours: signed here, or the same payload under a hash that an operator saw elsewhere. Final
//                        means CONFIRMED, or FAILED_FINAL `reverted`
//   cancel               the operator's self-transfer. Final means FAILED_FINAL `cancelled_by_operator`
//   external or unknown  somebody else's. STUCK as soon as it is seen, FAILED_FINAL `nonce_consumed_elsewhere` when
//                        it is final, TRACKING when a reorg gives the nonce back
// Nothing here ever leads to another nonce.
//
// What keeps it safe, whatever the facts:
//   - A fact that is missing decides nothing, and facts that contradict each other are the same as missing.
//   - An end with a receipt is decided on the receipt that is stored, while its block is on the node's own branch
//     and final there. Finding a receipt only stores it.
//   - An end without one (nonce_consumed_elsewhere) takes two rounds of facts: the first makes it STUCK. A block on the
//     node's own branch that lists an attempt of ours is a veto: the receipt is only late.
//
// What the caller owes:
//   - `mined_is_canonical`, `final_number` and the branch of `found` come from one walk along parent hashes from one
//     head, the node's own. Another endpoint's word about canonical blocks is not asked.
//   - NonceFacts come from one endpoint, best in one batch, in the order written there: a count that was read before
//     the receipts cannot have been raised by an attempt that the receipts do not show. An endpoint behind that head
//     may make a false alarm (STUCK, or no longer STUCK), never a wrong end.
//   - An attempt's nonce is the transaction's: whoever records a hash has checked its sender and nonce.
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

// A transaction that was ever signed for, or said to have, the nonce.
struct Attempt {
  std::string hash;
  AttemptKind kind = AttemptKind::kOriginal;
};

// Where an attempt is, as its receipt says.
struct Inclusion {
  std::string tx_hash;
  std::int64_t block_number = 0;
  std::string block_hash;
  bool succeeded = false;

  friend bool operator==(const Inclusion&, const Inclusion&) = default;
};

// What is stored.
struct OpenTx {
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;  // of no meaning while CREATED
  std::vector<Attempt> attempts;
  std::optional<Inclusion> mined;  // only while TRACKING or STUCK; never an external attempt's
  // STUCK because the nonce was seen taken by none of ours (Verdict::kStuckForeign), not for another reason.
  bool taken_by_foreign = false;
  // The row stands for a nonce that somebody else uses on a shared signer. That it is taken is expected; it ends
  // when that is final.
  bool external = false;
};

// One endpoint's answers about the signer, asked in this order: the counts, then the receipts of all attempts.
struct NonceFacts {
  std::int64_t at_head = 0;  // transaction count, latest
  // Count as of ChainFacts::final_number. Only if the endpoint has our walk's block at that height, also when it is
  // asked for the receipts: then its receipts cover everything up to there.
  std::optional<std::int64_t> at_final;
  // How many of the attempts of ours (all but external ones) it has a receipt for or says to be in a block, on whatever
  // branch. One that is off the node's own branch is not in ChainFacts::found, yet it explains the count.
  std::size_t own_mined = 0;
};

struct ChainFacts {
  std::int64_t head_number = 0;  // of the node's own walk
  // The highest block that counts as final in that walk, by depth or by tag; none: not known now. Above the head it
  // counts as the head.
  std::optional<std::int64_t> final_number;
  // Whether OpenTx::mined's block is on the node's own branch; none: cannot be told now. Needed only when mined.
  std::optional<bool> mined_is_canonical;
  // Receipts of attempts seen now, in blocks that are on the node's own branch.
  std::vector<Inclusion> found;
  // The block on the node's own branch that lists an attempt of ours (any but external ones), with or without a
  // receipt. While there is one, the nonce was taken by us, and an endpoint without the receipt only owes it.
  std::optional<std::int64_t> listed_block;
  std::optional<NonceFacts> nonce;  // none: not asked, or not all was answered
};

enum class Verdict {
  kWait,               // nothing to do
  kMined,              // store Decision::inclusion; TRACKING, sub state `mined`
  kMinedElsewhere,     // the same, in place of the stored one, whose block is dead: another block or another attempt
  kUnmined,            // the stored one's block is dead and nothing took its place: drop it, TRACKING, rebroadcast
  kConfirmed,          // the stored one is final and ours, and it succeeded
  kReverted,           // the stored one is final and ours, and it failed
  kCancelled,          // the stored one is final and the operator's cancel, however it went
  kConsumedElsewhere,  // a transaction that is not ours has finally taken the nonce; Decision::inclusion if known
  kStuckForeign,       // the same, not final or seen for the first time: STUCK, taken_by_foreign
  kTracking,           // taken_by_foreign no longer holds: TRACKING, rebroadcast. For external rows: it is taken now
};

struct Decision {
  Verdict verdict = Verdict::kWait;
  std::optional<Inclusion> inclusion;  // the one that the verdict is about
  std::string why;                     // for history and logs

  friend bool operator==(const Decision&, const Decision&) = default;
};

// Throws Exception `unknown_attempt` when `mined` or `found` names a hash that is not among the attempts, which is a
// caller's bug. Terminal and CREATED transactions wait.
Decision decide(const OpenTx& tx, const ChainFacts& facts);

// Where a verdict leads; `from` when it changes no state. From a state that decide() gave the verdict for, it is a step
// that kManagedTx allows.
TxState state_after(TxState from, Verdict verdict);
std::string_view to_string(Verdict verdict);
// The sub state of an end that failed, and the reason of its TxFailed. kNone for verdicts that do not fail.
SubState failure_reason(Verdict verdict);

}  // namespace fencepost::tx
