// Decides what a transaction offers for its gas. Each policy is one class.
#pragma once

#include <memory>
#include <vector>

#include "evm/block_follower.hpp"
#include "evm/chain_connector.hpp"
#include "tx/model/fees.hpp"

namespace fencepost::tx {

// All calls must be made on the chain's loop.
class FeePolicy {
 public:
  virtual ~FeePolicy() = default;

  // The fees to offer now, one result per payload, in order. Fees in the payload take precedence. Asks the chain at
  // most once, and only if needed. Errors: those of price(), or kUnavailable when the chain does not answer.
  virtual awaitable<std::vector<Result<evm::Fees>>> offers(std::vector<Payload> payloads) = 0;
};

// The policy that the options name: fixed fees, or market fees, which are read from the chain once per block
// (eth_feeHistory). Requires: connector and follower outlive the policy.
std::unique_ptr<FeePolicy> make_fee_policy(evm::ChainConnector& connector, const evm::BlockFollower& follower,
                                           const FeeOptions& options);

}  // namespace fencepost::tx
