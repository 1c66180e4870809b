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
  std::size_t endpoint = 0;  // that answered
};

struct ProbeRequest {
  std::string address;
  std::optional<Standard> expected;  // the standard that the caller named; the contract must be of it
  std::int64_t known_head = 0;
  bool fresh = false;  // endpoints that have not reached `known_head` are not asked: they have the rules of before
};

// Asks the endpoints in turn until one answers; a refusal by the contract is an answer. That there is no code at the
// address is believed only of an endpoint that has reached `known_head`, and only if no other one has code there: one
// that lags does not have a contract that was deployed a minute ago.
// Errors: kUnprocessable `not_a_contract`, `not_a_timelock` with `tried` in the context, `ambiguous_timelock`;
// kUnavailable `endpoint_behind`; otherwise as ChainConnector.
awaitable<Result<Probe>> probe_contract(evm::ChainConnector& chain, ProbeRequest request);

// Whether it is an answer about the contract, and not a failure of an endpoint.
bool is_refusal(const Error& error);

// The block in which the contract was created, by bisection, from the first endpoint that has `head` and the state of
// old blocks; nothing when there is none with that state. Requires: the contract exists at `head`.
awaitable<Result<std::optional<std::int64_t>>> deployment_block(evm::ChainConnector& chain, std::string address,
                                                                std::int64_t head);

}  // namespace fencepost::timelock
