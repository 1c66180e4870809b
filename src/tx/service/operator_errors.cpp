#include "tx/service/operator_errors.hpp"

namespace fencepost::tx {

Metrics::Counter& actions_total(Metrics& metrics, const ChainContext& chain, const std::string& action) {
  return metrics.counter("tx_operator_actions_total", "Actions of operators",
                         {{"action", action}, {"chain", chain.evm_chain.name()}});
}

Error no_such_tx() {
  return not_found("no_such_tx", "there is no transaction with this txId");
}

Error wrong_state(const ManagedTx& tx, std::string_view wanted) {
  return conflict("wrong_state", "the transaction's state does not allow this action: " + std::string(wanted))
      .with("state", std::string(kManagedTx.name(tx.state)));
}

Error moved_meanwhile() {
  return conflict("wrong_state", "the transaction changed during this request; read it again and retry");
}

bool has_bytes(const AttemptView& attempt) {
  return attempt.kind == AttemptKind::kOriginal || attempt.kind == AttemptKind::kCancel;
}

}  // namespace fencepost::tx
