// How a transaction's offer for its gas is found. One more way is one more class.
#pragma once

#include <memory>
#include <vector>

#include "evm/block_follower.hpp"
#include "evm/chain_connector.hpp"
#include "tx/model/fees.hpp"

namespace fencepost::tx {

// Belongs to the chain's loop.
class FeePolicy {
 public:
  virtual ~FeePolicy() = default;

  // What to offer now, one for each, in order; the caller's own fees come first. The chain is asked at most once, and
  // only if it must be. Errors: those of price(), or kUnavailable when the chain does not tell.
  virtual awaitable<std::vector<Result<evm::Fees>>> offers(std::vector<Payload> payloads) = 0;
};

// The one that the options name: `fixed`, or by the market, which is asked once per block (eth_feeHistory).
std::unique_ptr<FeePolicy> make_fee_policy(evm::ChainConnector& connector, const evm::BlockFollower& follower,
                                           const FeeOptions& options);

}  // namespace fencepost::tx
