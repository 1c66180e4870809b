#include "tx/service/nonce_history.hpp"

#include <algorithm>

namespace fencepost::tx {

void NonceHistory::note(const std::string& signer, SeenCount seen) {
  auto& entries = seen_[signer];
  // After a reorg, blocks and counts may be lower again.
  while (!entries.empty() &&
         (entries.back().block_number > seen.block_number || entries.back().count > seen.count ||
          (entries.back().block_number == seen.block_number && entries.back().block_hash != seen.block_hash))) {
    entries.pop_back();
  }
  if (!entries.empty() && entries.back().count == seen.count) return;
  if (entries.size() < kPerSigner) entries.push_back(std::move(seen));
}

std::optional<SeenCount> NonceHistory::newest_until(const std::string& signer, std::int64_t block_number) {
  const auto known = seen_.find(signer);
  if (known == seen_.end()) return std::nullopt;
  auto& entries = known->second;
  const auto above = std::ranges::upper_bound(entries, block_number, {}, &SeenCount::block_number);
  if (above == entries.begin()) return std::nullopt;
  entries.erase(entries.begin(), above - 1);
  return entries.front();
}

void NonceHistory::forget(const std::string& signer, const SeenCount& seen) {
  const auto known = seen_.find(signer);
  if (known == seen_.end()) return;
  std::erase(known->second, seen);
  if (known->second.empty()) seen_.erase(known);
}

}  // namespace fencepost::tx
