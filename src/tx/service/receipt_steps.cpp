#include "tx/service/receipt_steps.hpp"

#include <boost/json/array.hpp>

#include "runtime/log.hpp"
#include "tx/model/confirmations.hpp"
#include "tx/service/revert_reasons.hpp"

namespace fencepost::tx {

namespace {

constexpr std::chrono::seconds kRevertReasonPatience{3};

// Whether the receipt's block lists its transaction. If this node has not read the block, or was told that it lists no
// such transaction, another endpoint than the one that returned the receipt decides, if there is one in use: the list
// may have been the lie. nullopt: none of them has the block.
awaitable<std::optional<bool>> is_listed(ChainContext& chain, const evm::Receipt& receipt) {
  const auto number = receipt.block_number;
  const auto& hash = receipt.block_hash;
  if (chain.follower.lists(number, hash, receipt.tx_hash) == true) co_return true;
  if (chain.old_blocks.lists(number, hash, receipt.tx_hash) == true) co_return true;
  std::vector<std::size_t> witnesses;
  for (std::size_t endpoint = 0; endpoint < chain.connector.endpoint_count(); ++endpoint) {
    const auto status = chain.connector.endpoint_status(endpoint);
    const bool in_use = !status.wrong_chain && !status.cooling_until && !status.behind;
    if (in_use && endpoint != receipt.endpoint) witnesses.push_back(endpoint);
  }
  if (witnesses.empty()) witnesses.push_back(receipt.endpoint);
  for (const auto endpoint : witnesses) {
    const auto blocks = co_await chain.connector.blocks(number, 1, endpoint);
    if (!blocks || blocks->empty() || blocks->front().header.hash != hash) continue;
    chain.old_blocks.add(blocks->front());
    co_return chain.old_blocks.lists(number, hash, receipt.tx_hash);
  }
  co_return std::nullopt;
}

}  // namespace

awaitable<std::optional<bool>> on_own_branch(ChainContext& chain, const evm::Receipt& receipt) {
  const auto* head = chain.follower.window().head();
  if (head == nullptr || receipt.block_number > head->number) co_return std::nullopt;
  auto ours = co_await chain.evm_chain.branch().contains(receipt.block_number, receipt.block_hash);
  if (!ours) {
    const auto blocks = co_await chain.connector.blocks(receipt.block_number, 1, receipt.endpoint);
    if (!blocks || blocks->empty()) co_return std::nullopt;
    ours = blocks->front().header.hash == receipt.block_hash;
  }
  if (ours != true) co_return ours;
  const auto listed = co_await is_listed(chain, receipt);
  if (listed != false) co_return listed;
  log::warn("an endpoint returned a receipt of a block that does not list the transaction: it is not believed",
            {{"chain", chain.evm_chain.name()},
             {"txHash", receipt.tx_hash},
             {"block", receipt.block_number},
             {"endpoint", chain.connector.endpoint_status(receipt.endpoint).label}});
  co_return false;
}

awaitable<std::vector<std::string>> why_reverted(ChainContext& chain, std::vector<evm::Receipt> receipts) {
  co_return co_await revert_reasons(chain.connector, std::move(receipts), kRevertReasonPatience);
}

Step mined_step(const ChainContext& chain, const Match& match, const evm::Receipt& receipt, std::string revert_reason) {
  Step step(match.lease, match.tx_id, match.state, TxState::kTracking,
            "mined in block " + std::to_string(receipt.block_number));
  step.expect_receipt_hash = "";
  step.sub_state = SubState::kMined;
  step.error = receipt.succeeded ? std::string() : std::move(revert_reason);
  step.reset_tries = true;
  step.tx_hash = receipt.tx_hash;
  step.receipt = StoredReceipt{receipt.json, receipt.block_number, receipt.block_hash, receipt.succeeded};
  step.announced = AnnouncedBlock{receipt.block_number, receipt.block_hash};
  // An attempt that reverted has the reason as its message.
  if (match.outcome != AttemptOutcome::kAccepted || !receipt.succeeded) {
    step.attempt_outcome = AttemptOutcome::kAccepted;
  }
  if (match.state == TxState::kStuck) {
    step.events.emplace_back(TxEvent::kResumed,
                             resumed_json(match.lease.key, match.tx_id, match.nonce, step.to, step.why));
  }
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
  step.error = "";                                   // it may have reverted there
  step.attempt_outcome = AttemptOutcome::kAccepted;  // clears the attempt's revert reason, too
  step.drop_receipt = true;
  step.retract = true;
  step.due_in = std::chrono::milliseconds(0);
  if (const auto announcement = next_announcement({}, {.last = tx.announced, .withdrawn = false})) {
    step.events.push_back(confirmations_event(tx.lease.key, tx.tx_id, *announcement));
  }
  return step;
}

}  // namespace fencepost::tx
