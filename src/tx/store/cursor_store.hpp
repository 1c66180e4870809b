// Compares the nonce cursor with the chain's count: seeds it, advances it for a shared signer, and detects that another
// sender used an exclusive signer. Fenced like every other write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/pool.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/reconcile_reason.hpp"

namespace fencepost::tx {

// The chain's answer about one signer.
struct ChainNonce {
  SignerLease lease;
  std::int64_t nonce = 0;  // transaction count; includes pending transactions if configured
  bool shared = false;     // other senders use this signer, too
};

enum class CursorOutcome {
  kFenced,
  kUnchanged,  // the cursor stays
  kSeeded,     // first use of the signer
  kAdvanced,   // shared: another sender used nonces; external rows reserve them
  kMismatch,   // exclusive: the chain is ahead. No nonces are assigned until an operator accepts the chain's count
};

struct CursorResult {
  CursorOutcome outcome = CursorOutcome::kFenced;
  std::int64_t next_nonce = 0;
};

// The statements that observe_chain_nonces sends.
pg::Batch observe_statements(const std::string& node, const std::vector<ChainNonce>& observed);
// One result per signer, in order. Throws as Connection::run.
awaitable<std::vector<CursorResult>> observe_chain_nonces(pg::Pool& pool, std::string node,
                                                          std::vector<ChainNonce> observed);

struct Cursor {
  SignerKey key;
  std::optional<std::int64_t> next_nonce;
  std::optional<std::int64_t> chain_nonce;
  std::optional<ReconcileReason> reason;  // why the signer waits for an operator; nullopt: it does not
  std::optional<std::int64_t> gap_nonce;  // for kUndone and kGap
  bool chain_nonce_is_old = true;         // not read from the chain for `timeout`
};
awaitable<std::vector<Cursor>> read_cursors(pg::Pool& pool, std::vector<SignerLease> leases,
                                            std::chrono::milliseconds timeout);

}  // namespace fencepost::tx
