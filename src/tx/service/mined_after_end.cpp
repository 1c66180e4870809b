#include "tx/service/mined_after_end.hpp"

#include <algorithm>

#include "runtime/log.hpp"

namespace fencepost::tx {

Metrics::Counter& finality_violated_total(Metrics& metrics, const std::string& chain) {
  return metrics.counter("tx_finality_violated_total",
                         "Ended transactions undone by a reorg, or mined although they had ended unmined",
                         {{"chain", chain}});
}

awaitable<std::vector<ListedTx>> report_mined_after_end(ChainContext& chain, std::vector<ListedTx> listed) {
  auto& pool = chain.database.pool();
  std::vector<std::string> hashes;
  hashes.reserve(listed.size());
  for (const auto& one : listed) hashes.push_back(one.tx_hash);
  const auto found = co_await find_mined_after_end(pool, chain.chain_id(), std::move(hashes));
  std::erase_if(listed, [&](const ListedTx& one) { return std::ranges::find(found, one.tx_hash) == found.end(); });
  if (listed.empty()) co_return listed;
  for (const auto& one : co_await report_mined_after_end(pool, chain.node(), chain.chain_id(), listed)) {
    finality_violated_total(chain.metrics, chain.evm_chain.name()).Increment();
    log::error("a transaction that had ended without being mined is in a block",
               {{"chain", chain.evm_chain.name()},
                {"txId", one.tx_id.to_string()},
                {"signer", one.key.signer},
                {"nodeId", chain.node()},
                {"fencingToken", one.fencing_token.value_or(0)},
                {"nonce", one.nonce.value_or(-1)},
                {"txHash", one.tx_hash},
                {"block", one.block}});
    std::erase_if(listed, [&](const ListedTx& reported) { return reported.tx_hash == one.tx_hash; });
  }
  co_return listed;
}

}  // namespace fencepost::tx
