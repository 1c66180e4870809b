// The proof that a STUCK transaction whose nonce was taken, by a transaction that cannot be found, may be given up: at
// a final block every endpoint counts its nonce as used, and none has an attempt of it.
#pragma once

#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "tx/service/chain_context.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {

struct GiveUpProof {
  std::vector<std::string> hashes;  // of the attempts that the endpoints do not know
  boost::json::object facts;        // for the audit row
};

// Every configured endpoint must answer. Errors: 409 `give_up_refused` with `why` and what contradicts (`endpoint`,
// `txHash`, `chainNonce`, `finalBlock`); 503 `rpc_unavailable`, with `endpoint`, when one is silent, behind, on another
// chain or branch, or has dropped the state of the final block. Its count at the node's head is then noted in
// ChainContext::endpoint_counts, and proves the same once that block is final. Requires: it has a nonce. On the
// chain's loop. Throws what the database throws.
awaitable<Result<GiveUpProof>> prove_taken(ChainContext& chain, ManagedTx tx, std::vector<AttemptView> attempts);

}  // namespace fencepost::tx
