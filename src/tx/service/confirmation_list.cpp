#include "tx/service/confirmation_list.hpp"

#include <algorithm>

namespace fencepost::tx {

std::vector<BlockRef> confirmation_list(const evm::HeaderWindow& window, std::int64_t number, std::string_view hash,
                                        std::size_t limit) {
  std::vector<BlockRef> list;
  if (window.contains(number, hash) != true) return list;
  for (auto n = number; list.size() < limit; ++n) {
    const auto* header = window.find(n);
    if (header == nullptr) break;
    list.push_back({header->number, header->hash, header->parent_hash});
  }
  return list;
}

boost::json::array to_json(std::span<const BlockRef> list) {
  boost::json::array out;
  out.reserve(list.size());
  for (const auto& block : list) out.push_back({{"blockNumber", block.number}, {"blockHash", block.hash}});
  return out;
}

std::pair<TxEvent, std::string> confirmations_event(const SignerKey& key, const Uuid& tx_id,
                                                    const Announcement& announcement) {
  return {
      TxEvent::kConfirmations,
      event_json(key, tx_id, {{"newFork", announcement.new_fork}, {"confirmations", to_json(announcement.headers)}})};
}

}  // namespace fencepost::tx
