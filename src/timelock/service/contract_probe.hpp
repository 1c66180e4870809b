// Asks a contract what it is: which standard of timelock, with which delay and which rules.
//
// The answer of a contract that is neither names every function that was tried and what it answered. Call on the loop
// of the chain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "evm/chain_connector.hpp"
#include "timelock/model/standard.hpp"
#include "timelock/store/timelock_store.hpp"

namespace fencepost::timelock {

struct Probe {
  Standard standard = Standard::kCompound;
  ContractRules rules;
};

// `expected`: the standard that the caller named; the contract must be of it. Errors: kUnprocessable `not_a_contract`,
// `not_a_timelock` with `tried` in the context; otherwise as ChainConnector.
awaitable<Result<Probe>> probe_contract(evm::ChainConnector& chain, std::string address,
                                        std::optional<Standard> expected);

// The block in which the contract was created, by bisection; nothing when the endpoint has no state of old blocks.
// Requires: the contract exists at `head`.
awaitable<Result<std::optional<std::int64_t>>> deployment_block(evm::ChainConnector& chain, std::string address,
                                                                std::int64_t head);

}  // namespace fencepost::timelock
