// The chain's proof that a signer's cursor may be moved down: every endpoint counts exactly the nonces below it, and
// none knows a transaction of the signer with a higher one.
#pragma once

#include <cstdint>
#include <string>

#include <boost/json/object.hpp>

#include "tx/service/chain_context.hpp"
#include "tx/store/cursor_reset_store.hpp"

namespace fencepost::tx {

// 409 `reset_refused`. `why` is for programs.
Error reset_refused(std::string why, std::string message);

// Returns the facts for the audit row. Errors: `reset_refused` with the reason in `why` and what contradicts:
// `endpoint`, `chainNonce`, `txHash`. Endpoints on a wrong chain are not asked, and one that fails is ignored only if
// it failed before. On the chain's loop.
awaitable<Result<boost::json::object>> prove_reset(ChainContext& chain, SignerKey key, std::int64_t next_nonce,
                                                   ResetPlan plan);

}  // namespace fencepost::tx
