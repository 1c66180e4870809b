// Finds transactions that had ended in blocks that are not on the chain any more.
#pragma once

#include <cstdint>
#include <vector>

#include "base/uuid.hpp"
#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

struct OrphanedEnds {
  std::vector<Uuid> undone;
  bool all_known = true;  // false: of some block it is not known now whether it is on the chain
};
// Looks at the blocks above `above`, up to `final_number`, so that a node on an orphaned fork raises no false alarm.
// `below`: also at lower ones, from the highest down to the first that is on the chain: when the window was replaced,
// it is not known how deep the reorg was. On the chain's loop. Throws what the database throws.
awaitable<OrphanedEnds> find_orphaned_ends(ChainContext& chain, std::int64_t above, std::int64_t final_number,
                                           bool below);

}  // namespace fencepost::tx
