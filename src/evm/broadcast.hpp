// One outcome from the answers of several endpoints to the same broadcast.
#pragma once

#include <vector>

#include "evm/chain_connector.hpp"

namespace fencepost::evm {

// Whether any endpoint has the transaction: no other answer can change the outcome.
bool is_accepted(const std::vector<SendResult>& answers);

// The first acceptance counts. A transaction is refused only if every endpoint that got it refused it: while one of
// them may have it, or may take it later, the outcome is the one that leaves that open. Endpoints that certainly did
// not get it count only if none did. Nothing is known from no answers.
SendResult merge_answers(const std::vector<SendResult>& answers);

// Whether the refusal is about the transaction itself, so that only another endpoint's answer can change it.
bool is_refused_for_good(SubmitClass outcome);

}  // namespace fencepost::evm
