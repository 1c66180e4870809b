#include "tx/workers/missing_receipts.hpp"

#include <algorithm>

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
  log::warn("a block lists a transaction, but no endpoint returns its receipt: retrying",
            {{"chain", chain_}, {"txHash", tx_hash}, {"block", listing.block_number}});
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

MissingReceipts::Due MissingReceipts::take_due(TimePoint now, std::size_t limit) {
  Due due{.hashes = {}, .round = round_};
  for (auto& [hash, entry] : missing_) {
    if (due.hashes.size() == limit) break;
    if (entry.next > now) continue;
    entry.next = now + std::chrono::seconds(std::min(30, 1 << std::min(entry.tries, 5)));
    ++entry.tries;
    due.hashes.push_back(hash);
  }
  if (!due.hashes.empty()) ++round_;
  return due;
}

void MissingReceipts::update_gauge() {
  gauge_.Set(static_cast<double>(missing_.size()));
}

}  // namespace fencepost::tx
