// Decides what a transaction offers for its gas. Each policy is one class.
#pragma once

#include <memory>
#include <vector>

#include "evm/block_follower.hpp"
#include "evm/chain_connector.hpp"
#include "tx/model/fees.hpp"
#include "tx/service/fee_kind.hpp"

namespace fencepost::tx {

// What is to be priced.
struct FeeRequest {
  Payload payload;
  std::optional<Uint256> ceiling = {};  // most per gas
  // The cap that endpoints refused as too high: market fees offer at most half of it, or what the next block needs.
  std::optional<Uint256> refused_cap = {};
};

// All calls must be made on the chain's loop.
class FeePolicy {
 public:
  virtual ~FeePolicy() = default;

  // The fees to offer now, one result per request, in order. Fees in the payload take precedence. Asks the chain at
  // most once, and only if needed. Errors: those of price(), or kUnavailable when the chain does not answer.
  virtual awaitable<std::vector<Result<evm::Fees>>> offers(std::vector<FeeRequest> requests) = 0;
};

// The policy that the options name: fixed fees, or market fees, which are read from the chain once per block
// (eth_feeHistory, or eth_gasPrice on a chain without a base fee). Requires: connector, follower and kind outlive the
// policy.
std::unique_ptr<FeePolicy> make_fee_policy(evm::ChainConnector& connector, const evm::BlockFollower& follower,
                                           ChainFeeKind& kind, const FeeOptions& options);

}  // namespace fencepost::tx
