#include "tx/workers/missing_receipts.hpp"

#include <algorithm>
#include <utility>

#include "runtime/log.hpp"

namespace fencepost::tx {

MissingReceipts::MissingReceipts(std::string chain, Metrics& metrics)
    : chain_(std::move(chain)),
      gauge_(metrics.gauge("tx_receipts_missing",
                           "Transactions in a block on this node's branch whose receipt no endpoint returns",
                           {{"chain", chain_}})) {}

void MissingReceipts::add(const std::string& tx_hash, evm::Listing listing) {
  const auto known = missing_.find(tx_hash);
  if (known != missing_.end()) {
    known->second.listing = std::move(listing);
    return;
  }
  if (missing_.size() >= kLimit) return;
  // Once per block: an endpoint that stops answering hides the receipts of a whole block.
  if (std::exchange(told_block_, listing.block_hash) != listing.block_hash) {
    log::warn("a block lists a transaction, but no endpoint returns its receipt: retrying",
              {{"chain", chain_}, {"txHash", tx_hash}, {"block", listing.block_number}});
  }
  missing_.emplace(tx_hash, Entry{.listing = std::move(listing)});
  update_gauge();
}

void MissingReceipts::remove(const std::string& tx_hash) {
  missing_.erase(tx_hash);
  update_gauge();
}

void MissingReceipts::forget_dead(const evm::HeaderWindow& window) {
  std::erase_if(missing_, [&](const auto& entry) {
    const auto& listing = entry.second.listing;
    return window.contains(listing.block_number, listing.block_hash) == false;
  });
  update_gauge();
}

std::vector<MissingReceipts::Due> MissingReceipts::take_due(TimePoint now, std::size_t limit) {
  std::vector<std::pair<const std::string, Entry>*> waiting;
  for (auto& entry : missing_) {
    if (entry.second.next <= now) waiting.push_back(&entry);
  }
  std::ranges::sort(waiting, {}, [](const auto* entry) { return entry->second.next; });
  waiting.resize(std::min(limit, waiting.size()));
  std::vector<Due> due;
  due.reserve(waiting.size());
  for (auto* one : waiting) {
    auto& [hash, entry] = *one;
    entry.next = now + std::chrono::seconds(std::min(30, 1 << std::min<std::size_t>(entry.tries, 5)));
    due.push_back({hash, entry.tries++});
  }
  return due;
}

std::optional<evm::Listing> MissingReceipts::find(const std::string& tx_hash) const {
  const auto known = missing_.find(tx_hash);
  return known == missing_.end() ? std::nullopt : std::optional(known->second.listing);
}

void MissingReceipts::update_gauge() {
  gauge_.Set(static_cast<double>(missing_.size()));
}

}  // namespace fencepost::tx
