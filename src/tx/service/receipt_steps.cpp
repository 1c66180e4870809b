#include "tx/service/receipt_steps.hpp"

#include <boost/json/array.hpp>

#include "tx/model/confirmations.hpp"

namespace fencepost::tx {

awaitable<std::optional<bool>> on_own_branch(ChainContext& chain, const evm::Receipt& receipt) {
  const auto& window = chain.follower.window();
  const auto* bottom = window.bottom();
  if (bottom == nullptr) co_return std::nullopt;
  if (receipt.block_number >= bottom->number) co_return window.contains(receipt.block_number, receipt.block_hash);
  const auto blocks = co_await chain.connector.blocks(receipt.block_number, 1, receipt.endpoint);
  if (!blocks || blocks->empty()) co_return std::nullopt;
  co_return blocks->front().header.hash == receipt.block_hash;
}

Step mined_step(const ChainContext& chain, const Match& match, const evm::Receipt& receipt) {
  Step step(match.lease, match.tx_id, match.state, TxState::kTracking,
            "mined in block " + std::to_string(receipt.block_number));
  step.expect_receipt_hash = "";
  step.sub_state = SubState::kMined;
  step.error = "";
  step.reset_tries = true;
  step.tx_hash = receipt.tx_hash;
  step.receipt = StoredReceipt{receipt.json, receipt.block_number, receipt.block_hash, receipt.succeeded};
  step.announced = AnnouncedBlock{receipt.block_number, receipt.block_hash};
  if (match.outcome != AttemptOutcome::kAccepted) step.attempt_outcome = AttemptOutcome::kAccepted;
  if (match.state == TxState::kAllocated) {
    step.events.emplace_back(TxEvent::kSubmitted, event_json(match.lease.key, match.tx_id,
                                                             {{"txHash", receipt.tx_hash}, {"nonce", match.nonce}}));
  }
  step.events.emplace_back(TxEvent::kReceiptUpdated,
                           event_json(match.lease.key, match.tx_id,
                                      {{"txHash", receipt.tx_hash},
                                       {"blockNumber", receipt.block_number},
                                       {"blockHash", receipt.block_hash},
                                       {"status", receipt.succeeded ? "succeeded" : "reverted"}}));
  if (match.withdrawn) {
    // Consumers hold the list of the withdrawn receipt: announce the whole new list.
    const auto list = confirmation_list(chain.follower.window(), receipt.block_number, receipt.block_hash);
    if (const auto announcement = next_announcement(list, {.last = std::nullopt, .withdrawn = true})) {
      step.events.push_back(confirmations_event(match.lease.key, match.tx_id, *announcement));
      step.announced = announcement->then.last;
    }
  }
  return step;
}

Step unmined_step(const MinedTx& tx, std::string why) {
  Step step(tx.lease, tx.tx_id, tx.state, TxState::kTracking, std::move(why));
  step.expect_receipt_hash = tx.block_hash;
  step.sub_state = SubState::kReorged;
  step.drop_receipt = true;
  step.retract = true;
  step.due_in = std::chrono::milliseconds(0);
  if (const auto announcement = next_announcement({}, {.last = tx.announced, .withdrawn = false})) {
    step.events.push_back(confirmations_event(tx.lease.key, tx.tx_id, *announcement));
  }
  return step;
}

}  // namespace fencepost::tx
