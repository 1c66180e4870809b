#include "evm/listed_transactions.hpp"

#include <algorithm>
#include <charconv>

namespace fencepost::evm {
namespace {

std::uint64_t prefix_of(std::string_view tx_hash) {
  constexpr std::size_t kDigits = 16;
  const auto digits = tx_hash.substr(std::min<std::size_t>(2, tx_hash.size()), kDigits);
  std::uint64_t prefix = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), prefix, 16);
  return prefix;
}

}  // namespace

void ListedTransactions::add(const Block& block) {
  Entry entry{.hash = block.header.hash, .prefixes = {}};
  entry.prefixes.reserve(block.transactions.size());
  for (const auto& hash : block.transactions) entry.prefixes.push_back(prefix_of(hash));
  std::ranges::sort(entry.prefixes);
  if (blocks_.size() >= kMostBlocks && !blocks_.contains(block.header.number)) blocks_.erase(blocks_.begin());
  blocks_.insert_or_assign(block.header.number, std::move(entry));
}

void ListedTransactions::keep_only(const HeaderWindow& window) {
  std::erase_if(blocks_, [&](const auto& block) { return window.contains(block.first, block.second.hash) != true; });
}

std::optional<Listing> ListedTransactions::find(std::string_view tx_hash) const {
  const auto prefix = prefix_of(tx_hash);
  for (const auto& [number, entry] : blocks_) {
    if (std::ranges::binary_search(entry.prefixes, prefix)) return Listing{number, entry.hash};
  }
  return std::nullopt;
}

std::optional<bool> ListedTransactions::lists(std::int64_t block_number, std::string_view block_hash,
                                              std::string_view tx_hash) const {
  const auto block = blocks_.find(block_number);
  if (block == blocks_.end() || block->second.hash != block_hash) return std::nullopt;
  return std::ranges::binary_search(block->second.prefixes, prefix_of(tx_hash));
}

}  // namespace fencepost::evm
