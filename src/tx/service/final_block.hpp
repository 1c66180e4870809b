// The highest block that counts as final on the node's own branch, by the chain's rule.
#pragma once

#include <optional>

#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

struct FinalBlock {
  std::int64_t number = 0;
  evm::Endpoint endpoint;  // who named it; none: counted from the node's own head
};

// Nothing while it cannot be told: no head yet, a chain shorter than the depth, or a tag that no endpoint gives or
// that names a block which is not on the node's own branch.
awaitable<std::optional<FinalBlock>> final_block(ChainContext& chain);

}  // namespace fencepost::tx
