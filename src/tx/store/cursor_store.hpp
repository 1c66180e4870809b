// The nonce cursor and the chain's own count: seeding, following a shared signer, and noticing that an exclusive one
// was used by somebody else. Fenced like every other write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/pool.hpp"
#include "tx/model/lease.hpp"

namespace fencepost::tx {

// What the chain said of a signer.
struct ChainNonce {
  SignerLease lease;
  std::int64_t nonce = 0;  // transactions so far, those that wait included if so configured
  bool shared = false;     // others use this signer too
};

enum class CursorOutcome {
  kFenced,
  kUnchanged,  // as it was
  kSeeded,     // first use
  kAdvanced,   // shared: somebody else used some; their places are kept as external rows
  kMismatch,   // exclusive: the chain is ahead. Nothing is numbered until an operator accepts it
};

struct CursorResult {
  CursorOutcome outcome = CursorOutcome::kFenced;
  std::int64_t next_nonce = 0;
};

// What observe_chain_nonces sends.
pg::Batch observe_statements(const std::string& node, const std::vector<ChainNonce>& observed);
// One for each, in order.
awaitable<std::vector<CursorResult>> observe_chain_nonces(pg::Pool& pool, std::string node,
                                                          std::vector<ChainNonce> observed);

struct Cursor {
  SignerKey key;
  std::optional<std::int64_t> next_nonce;
  std::optional<std::int64_t> chain_nonce;
  bool needs_reconcile = false;
  bool chain_nonce_is_old = true;  // not seen for `timeout`
};
awaitable<std::vector<Cursor>> read_cursors(pg::Pool& pool, std::vector<SignerLease> leases,
                                            std::chrono::milliseconds timeout);

}  // namespace fencepost::tx
