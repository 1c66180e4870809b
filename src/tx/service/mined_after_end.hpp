// Reports transactions that had ended as never to be mined, and that a block of the node's own branch lists.
#pragma once

#include <vector>

#include "tx/service/chain_context.hpp"
#include "tx/store/mined_after_end_store.hpp"

namespace fencepost::tx {

// Announces, logs and counts those among `listed`. Returns those that another session has locked: call again later
// with them. On the chain's loop. Throws what the database throws.
awaitable<std::vector<ListedTx>> report_mined_after_end(ChainContext& chain, std::vector<ListedTx> listed);

// Ended transactions that turned out to be wrong: what had ended was undone, or what never could be mined was.
Metrics::Counter& finality_violated_total(Metrics& metrics, const std::string& chain);

}  // namespace fencepost::tx
