// What the chain asks for gas now, asked once per block.
#pragma once

#include <optional>
#include <string>

#include "evm/block_follower.hpp"
#include "evm/chain_connector.hpp"
#include "tx/fee_policy.hpp"

namespace fencepost::tx {

// Belongs to the chain's loop.
class FeeOracle {
 public:
  FeeOracle(evm::ChainConnector& connector, const evm::BlockFollower& follower, FeeOptions options)
      : connector_(connector), follower_(follower), options_(std::move(options)) {}

  // Errors as ChainConnector's.
  awaitable<Result<FeeQuote>> quote();

  // Whether the payload can be priced without asking the chain.
  bool knows_without_asking(const Payload& payload) const;

 private:
  evm::ChainConnector& connector_;
  const evm::BlockFollower& follower_;
  FeeOptions options_;
  std::string block_;  // of the quote
  std::optional<FeeQuote> quote_;
};

}  // namespace fencepost::tx
