// Finds and stores a gap: a nonce below a signer's cursor that the chain does not count as used and that no open
// transaction has. The signer's higher nonces can never be mined, so the signer waits for an operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/uuid.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/reconcile_reason.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kFindGaps;
extern const pg::Statement kFindUndone;
extern const pg::Statement kNoteGaps;
}  // namespace sql

// A signer, and the chain's count of its transactions: all nonces below it are used, or are in an endpoint's pool.
struct CountedSigner {
  SignerLease lease;
  std::int64_t count = 0;
};

struct Gap {
  std::int64_t nonce = 0;
  std::optional<Uuid> tx_id;  // the transaction that had it, if there is one; it has ended
  std::optional<std::int64_t> receipt_block;
  std::optional<std::string> receipt_hash;
};
// The lowest gap at or above the count of each signer, in order; nullopt where there is none. Takes no lock.
awaitable<std::vector<std::optional<Gap>>> find_gaps(pg::Pool& pool, const std::vector<CountedSigner>& counted);

// Transactions of the signer that had ended in a block, with a nonce at or above `from`: by nonce, at most `limit`.
awaitable<std::vector<Uuid>> find_undone(pg::Pool& pool, SignerKey key, std::int64_t from, std::size_t limit);

struct GapNote {
  CountedSigner signer;
  std::optional<std::int64_t> nonce;  // nullopt: there is none any more
};
enum class NoteOutcome { kFenced, kMoved, kNoted, kCleared };
struct NotedGap {
  NoteOutcome outcome = NoteOutcome::kFenced;
  std::optional<ReconcileReason> reason;
};
// The statements that note_gaps sends.
pg::Batch note_statements(const std::string& node, const std::vector<GapNote>& notes);
// Under the cursor's lock: stores the gap, so that no nonces are assigned, or clears it. kMoved when the lowest gap is
// another one by now, or the signer waits for an operator because the chain is ahead. One result for each, in order.
// Throws as Connection::run.
awaitable<std::vector<NotedGap>> note_gaps(pg::Pool& pool, std::string node, std::vector<GapNote> notes);

}  // namespace fencepost::tx
