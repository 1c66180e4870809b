// The queries with which the workers of a chain find their work. All return only transactions whose signer `node`
// leads.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/uuid.hpp"
#include "pg/pool.hpp"
#include "tx/model/attempt.hpp"
#include "tx/model/confirmations.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/state.hpp"
#include "tx/model/sub_state.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kDueSubmits;
extern const pg::Statement kDueSubmitsOf;
extern const pg::Statement kMatchAttempts;
extern const pg::Statement kStaleReceipts;
extern const pg::Statement kNoteChecks;
extern const pg::Statement kMinedBetween;
extern const pg::Statement kMinedOpen;
extern const pg::Statement kOpenHeads;
extern const pg::Statement kMakeFailedDue;
}  // namespace sql

// A transaction to be broadcast for the first time.
struct DueSubmit {
  SignerLease lease;
  Uuid tx_id;
  std::int64_t nonce = 0;
  std::string payload;
  std::int64_t gas_limit = 0;
  std::int32_t retry_count = 0;
  std::optional<std::string> tx_hash;     // of the newest attempt, if there is one
  std::optional<std::string> raw;         // "0x…"
  std::optional<AttemptOutcome> outcome;  // of that attempt
  SubState sub_state = SubState::kNone;   // why no endpoint accepted it
  std::int64_t attempts = 0;
  std::int64_t claims = 0;          // number of claims of that attempt
  std::optional<std::string> fees;  // of that attempt, JSON
};
// First broadcasts run in two lanes. A signer belongs to one of them, so that its transactions are sent in order.
inline constexpr std::int64_t kSubmitLanes = 2;
std::int64_t submit_lane_of(std::string_view signer);

// At most `limit` transactions, each signer's in nonce order and without a gap: a transaction that is not due yet
// delays the signer's higher nonces. Looks only at `signers`; nullopt: at all that the node leads, or at those of
// the lane.
awaitable<std::vector<DueSubmit>> due_submits(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                              std::optional<std::vector<std::string>> signers, std::size_t limit,
                                              std::optional<std::int64_t> lane = std::nullopt);

// Makes due now the first broadcasts that wait for a retry because no endpoint answered, at most `limit` of each
// signer. Returns their number. Leaves out rows that another session has locked.
awaitable<std::size_t> make_failed_broadcasts_due(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                  std::size_t limit);

// An open transaction of ours that has an attempt among the given hashes.
struct Match {
  SignerLease lease;
  Uuid tx_id;
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;
  SubState sub_state = SubState::kNone;
  std::string attempt_hash;
  AttemptKind attempt_kind = AttemptKind::kOriginal;
  std::optional<AttemptOutcome> outcome;    // of that attempt
  std::optional<std::string> receipt_hash;  // of the block that is stored now
  std::optional<AnnouncedBlock> announced;
  bool withdrawn = false;  // the withdrawal of its receipt was announced to consumers
  std::optional<std::chrono::milliseconds> since_submit;
};
awaitable<std::vector<Match>> match_attempts(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                             std::vector<std::string> hashes);

// Open transactions without a receipt that were not looked up for `stale`: one match for each of their attempts.
awaitable<std::vector<Match>> stale_receipts(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                             std::chrono::milliseconds stale, std::size_t limit);
awaitable<> note_receipt_checks(pg::Pool& pool, std::vector<Uuid> tx_ids);

// A mined transaction that is not final.
struct MinedTx {
  SignerLease lease;
  Uuid tx_id;
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;
  std::string tx_hash;
  AttemptKind attempt_kind = AttemptKind::kOriginal;
  bool succeeded = false;
  std::int64_t block = 0;
  std::string block_hash;
  std::optional<AnnouncedBlock> announced;
  std::optional<std::string> error;  // why it reverted
  std::chrono::milliseconds age{0};  // since it was created
};
// A range of blocks, both ends included. By default, all blocks.
struct MinedBlocks {
  std::int64_t from = 0;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
};
// Open transactions that were mined in `blocks`: the first `limit` after `after`, the last one of the previous page.
//
// mined_open reads everything that is open, by signer and nonce. mined_between reads the receipts in these blocks, also
// of transactions that have ended: for blocks that were just mined or have just become final.
awaitable<std::vector<MinedTx>> mined_open(pg::Pool& pool, std::string node, std::int64_t chain_id, MinedBlocks blocks,
                                           std::optional<MinedTx> after, std::size_t limit);
awaitable<std::vector<MinedTx>> mined_between(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                              MinedBlocks blocks, std::optional<MinedTx> after, std::size_t limit);

// The signer's lowest nonce without a receipt.
struct OpenHead {
  SignerLease lease;
  Uuid tx_id;
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;
  SubState sub_state = SubState::kNone;
  std::optional<std::string> tx_hash;
  bool withdrawn = false;
  bool unsent = false;                      // every attempt was refused, or there is none: no endpoint has it
  std::chrono::milliseconds since_step{0};  // since its row was changed
  std::chrono::milliseconds waits{0};       // since it got its nonce, its first broadcast, or its receipt was withdrawn
  std::optional<std::chrono::milliseconds>
      since_head;  // since the previous nonce was mined; nullopt: it is the first nonce
};
awaitable<std::vector<OpenHead>> open_heads(pg::Pool& pool, std::string node, std::int64_t chain_id);

}  // namespace fencepost::tx
