// Whether a chain has a base fee (EIP-1559) or not. Configured, or learned from the stored headers, or on a new
// database from the first block.
//
// Learned once: an endpoint that leaves out `baseFeePerGas` must not make the node pay whatever gas price the endpoint
// names. A block of the other kind is counted and logged, and changes nothing.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "evm/chain_connector.hpp"
#include "runtime/metrics.hpp"
#include "tx/model/fees.hpp"

namespace fencepost::tx {

class ChainFeeKind {
 public:
  // `configured`: kUnknown to learn it.
  ChainFeeKind(FeeKind configured, std::string chain, Metrics& metrics);

  // Learns from what nodes have seen before; the majority decides. Nothing if the kind is known, or from
  // no headers. Requires: before the first call of see().
  void learn(std::span<const evm::BlockHeader> stored);
  // On the chain's loop. The same head again is not counted again.
  void see(const evm::BlockHeader& head);
  // Any thread. kUnknown before the first block.
  FeeKind get() const { return kind_.load(std::memory_order_relaxed); }

 private:
  std::atomic<FeeKind> kind_;
  std::string chain_;
  Metrics::Counter& contradictions_total_;
  std::string contradicted_by_;  // hash of the last such block
  bool contradicted_ = false;    // and it was the last one that was seen
};

}  // namespace fencepost::tx
