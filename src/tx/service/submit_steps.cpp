#include "tx/service/submit_steps.hpp"

#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

Step submit_waits(const DueSubmit& due, SubState sub_state, std::string message) {
  Step step(due.lease, due.tx_id, TxState::kAllocated, TxState::kAllocated, "will be retried: " + message);
  step.quiet = due.retry_count > 0;
  step.expect_receipt_hash = "";
  step.sub_state = sub_state;
  step.error = std::move(message);
  step.failed_try = true;
  step.due_in = ChainContext::retry_delay(due.retry_count);
  return step;
}

Step submit_stuck(const DueSubmit& due, SubState sub_state, std::string message) {
  Step step(due.lease, due.tx_id, TxState::kAllocated, TxState::kStuck, "cannot succeed by retrying: " + message);
  step.expect_receipt_hash = "";
  step.events.emplace_back(
      TxEvent::kStuck, event_json(due.lease.key, due.tx_id,
                                  {{"nonce", due.nonce}, {"reason", kSubStates.name(sub_state)}, {"detail", message}}));
  step.due_in = kNever;
  step.sub_state = sub_state;
  step.error = std::move(message);
  return step;
}

}  // namespace fencepost::tx
