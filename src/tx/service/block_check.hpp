// Whether a block is on the chain, also where the node's own branch cannot say: below its stored headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

// The endpoints that answer for this chain; all of them when none does.
std::vector<std::size_t> usable_endpoints(const evm::ChainConnector& connector);

// The node's own branch decides. Where the stored headers do not reach the block, the endpoints do: all that answer
// must agree, and at least two must answer where two are configured. nullopt: neither can say, or the block is above
// the node's head. On the chain's loop. Throws what the database throws.
awaitable<std::optional<bool>> is_on_chain(ChainContext& chain, std::int64_t number, std::string hash);

}  // namespace fencepost::tx
