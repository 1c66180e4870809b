#include "tx/service/final_block.hpp"

#include "runtime/log.hpp"
#include "tx/model/finality.hpp"

namespace fencepost::tx {

awaitable<std::optional<FinalBlock>> final_block(ChainContext& chain) {
  const auto* head = chain.follower.window().head();
  if (head == nullptr) co_return std::nullopt;
  const auto& rule = chain.options.confirmations.required;
  if (rule.kind == Finality::Kind::kDepth) {
    const auto number = final_by_depth(head->number, rule.depth);
    if (!number) co_return std::nullopt;
    co_return FinalBlock{*number, std::nullopt};
  }
  const auto tag = rule.kind == Finality::Kind::kSafe ? evm::BlockTag::kSafe : evm::BlockTag::kFinalized;
  const auto block = co_await chain.connector.block(tag);
  if (!block) {
    log::warn("no endpoint names the final block", block.error(), {{"chainId", chain.chain_id()}});
    co_return std::nullopt;
  }
  // Asked again: the window may have moved meanwhile.
  const auto ours = chain.follower.window().contains(block->header.number, block->header.hash);
  if (ours == false) co_return std::nullopt;
  co_return FinalBlock{block->header.number, block->endpoint};
}

}  // namespace fencepost::tx
