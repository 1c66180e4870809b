#include "tx/service/block_check.hpp"

#include <algorithm>

namespace fencepost::tx {

std::vector<std::size_t> usable_endpoints(const evm::ChainConnector& connector) {
  std::vector<std::size_t> usable;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < connector.endpoint_count(); ++i) {
    const auto status = connector.endpoint_status(i);
    all.push_back(i);
    if (!status.wrong_chain && !status.cooling_until) usable.push_back(i);
  }
  return usable.empty() ? all : usable;
}

awaitable<std::optional<bool>> is_on_chain(ChainContext& chain, std::int64_t number, std::string hash) {
  if (const auto there = co_await chain.evm_chain.branch().contains(number, hash)) co_return there;
  const auto* head = chain.follower.window().head();
  if (head == nullptr || number > head->number) co_return std::nullopt;
  std::size_t same = 0;
  std::size_t other = 0;
  for (const auto endpoint : usable_endpoints(chain.connector)) {
    if (chain.connector.endpoint_status(endpoint).wrong_chain) continue;
    const auto blocks = co_await chain.connector.blocks(number, 1, endpoint);
    if (!blocks || blocks->empty()) continue;
    ++(blocks->front().header.hash == hash ? same : other);
  }
  const auto needed = std::min<std::size_t>(2, chain.connector.endpoint_count());
  if (same + other < needed || (same > 0 && other > 0)) co_return std::nullopt;
  co_return same > 0;
}

}  // namespace fencepost::tx
