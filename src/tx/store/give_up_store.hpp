// Ends a transaction whose nonce was taken by a transaction that cannot be found, by an operator's decision.
#pragma once

#include <string>
#include <vector>

#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/store/operator_store.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kGiveUp;
}  // namespace sql

// The statements that give_up sends. Requires: act.tx_id.
pg::Batch give_up_statements(const std::string& node, const OperatorAct& act, const std::vector<std::string>& hashes);
// FAILED_FINAL `given_up`; the record keeps its nonce, which is used up. kMoved, with nothing written, unless all of
// this holds under the locks of lease and row: it is STUCK `nonce_taken` without a receipt, and each of its attempts
// (all but external ones) is among `hashes`, which were proven to be unknown. Throws as Connection::run, or
// `tx_locked`.
awaitable<StepOutcome> give_up(pg::Pool& pool, std::string node, OperatorAct act, std::vector<std::string> hashes);

}  // namespace fencepost::tx
