// What the parts of OperatorService share.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "tx/model/managed_tx.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {

Metrics::Counter& actions_total(Metrics& metrics, const ChainContext& chain, const std::string& action);

Error no_such_tx();
Error wrong_state(const ManagedTx& tx, std::string_view wanted);
// Another writer changed the transaction between the read and the write.
Error moved_meanwhile();

// Whether the attempt was signed here.
bool has_bytes(const AttemptView& attempt);

}  // namespace fencepost::tx
