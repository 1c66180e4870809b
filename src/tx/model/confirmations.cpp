#include "tx/model/confirmations.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace fencepost::tx {
namespace {

void check_linked(std::span<const BlockRef> list) {
  const auto unlinked = [](const BlockRef& lower, const BlockRef& upper) {
    return upper.number != lower.number + 1 || upper.parent_hash != lower.hash;
  };
  const auto gap = std::ranges::adjacent_find(list, unlinked);
  if (gap == list.end()) return;
  throw Exception(internal("broken_header_walk", "the headers above a receipt are not one branch")
                      .with("block", std::to_string(gap->number))
                      .with("hash", gap->hash));
}

// How many blocks of the list the consumer has; nullopt when the consumer's list is not the beginning of `list`.
std::optional<std::size_t> known_length(std::span<const BlockRef> list, const Announced& announced) {
  if (announced.withdrawn) return std::nullopt;
  if (!announced.last) return 0;
  const auto found = std::ranges::find(list, announced.last->number, &BlockRef::number);
  if (found == list.end() || found->hash != announced.last->hash) return std::nullopt;
  return static_cast<std::size_t>(found - list.begin()) + 1;
}

}  // namespace

std::vector<BlockRef> confirmation_list(const evm::HeaderWindow& window, std::int64_t number, std::string_view hash) {
  std::vector<BlockRef> list;
  if (window.contains(number, hash) != true) return list;
  for (const auto* header = window.find(number); header != nullptr; header = window.find(header->number + 1)) {
    list.push_back({header->number, header->hash, header->parent_hash});
  }
  return list;
}

std::optional<Announcement> next_announcement(std::span<const BlockRef> list, const Announced& announced) {
  check_linked(list);
  if (list.empty()) {
    if (!announced.last) return std::nullopt;
    return Announcement{true, list, {std::nullopt, true}};
  }
  const auto known = known_length(list, announced);
  if (known == list.size()) return std::nullopt;
  const Announced then{AnnouncedBlock{list.back().number, list.back().hash}, false};
  return Announcement{!known, list.subspan(known.value_or(0)), then};
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
