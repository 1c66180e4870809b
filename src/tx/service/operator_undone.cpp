// The operator's actions on transactions that are not open, and on a signer whose chain went back.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/serialize.hpp>

#include "runtime/log.hpp"
#include "runtime/on_loop.hpp"
#include "runtime/test_point.hpp"
#include "tx/service/block_check.hpp"
#include "tx/service/cursor_reset.hpp"
#include "tx/service/operator_errors.hpp"
#include "tx/service/operator_service.hpp"
#include "tx/store/cursor_store.hpp"
#include "tx/store/gap_store.hpp"
#include "tx/store/reopen_store.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kUndoneNamed = 20;
// Twice the time that an endpoint has to answer: a broadcast that began before has ended.
constexpr std::chrono::seconds kSendingPatience{20};

// A block above the head was final once, so the chain was reset below it.
awaitable<bool> is_orphaned(ChainContext& chain, const ManagedTx& tx) {
  if (!tx.receipt_block || !tx.receipt_hash) co_return false;
  if (const auto there = co_await is_on_chain(chain, *tx.receipt_block, *tx.receipt_hash)) co_return !*there;
  const auto* head = chain.follower.window().head();
  co_return head != nullptr&& chain.follower.synced() && *tx.receipt_block > head->number;
}

// On the chain's loop.
awaitable<Result<UndoneProof>> prove_undone(ChainContext& chain, ManagedTx tx) {
  const auto counts = co_await chain.chain_nonces({tx.key.signer}, evm::NonceTag::kLatest);
  if (!counts.front()) co_return fail(counts.front().error());
  UndoneProof proof{.chain_count = *counts.front(), .orphan_block = std::nullopt};
  if (co_await is_orphaned(chain, tx)) proof.orphan_block = tx.receipt_hash;
  co_return proof;
}

Error not_undone(const ManagedTx& tx, const UndoneProof& proof, std::string why) {
  return conflict("not_undone", "the transaction was not undone: " + std::move(why))
      .with("state", std::string(kManagedTx.name(tx.state)))
      .with("nonce", std::to_string(*tx.nonce))
      .with("chainNonce", std::to_string(proof.chain_count));
}

// Whether the proof allows the transaction to be sent again.
Result<void> check_undone(const ManagedTx& tx, const UndoneProof& proof, bool cancels) {
  if (*tx.nonce < proof.chain_count) {
    return fail(not_undone(tx, proof, "the chain counts its nonce as used; wait until finality is decided"));
  }
  const bool reported = tx.sub_state == kSubStates.name(SubState::kFinalityViolated);
  if (reported || proof.orphan_block || (cancels && !tx.receipt_block)) return {};
  if (!tx.receipt_block) return fail(not_undone(tx, proof, "it had ended without being mined; it can be cancelled"));
  return fail(not_undone(tx, proof, "its block is not known to be off the chain"));
}

}  // namespace

awaitable<Result<ManagedTx>> OperatorService::resend(Uuid tx_id, Operator who) {
  const auto tx = co_await find_tx(database_.pool(), tx_id);
  if (!tx) co_return fail(no_such_tx());
  const auto lease = co_await lease_of(tx->key);
  if (!lease) co_return fail(lease.error());
  if (!kManagedTx.terminal(tx->state) || !tx->nonce) {
    co_return fail(wrong_state(*tx, "expected a transaction that has ended and has its nonce"));
  }
  auto* chain = chains_.at(tx->key.chain_id);
  auto proof = co_await on_loop(chain->home, [chain, tx = *tx] { return prove_undone(*chain, tx); });
  if (!proof) co_return fail(proof.error());
  if (const auto undone = check_undone(*tx, *proof, false); !undone) co_return fail(undone.error());
  const auto attempts = co_await list_attempts(database_.pool(), tx_id);
  if (std::ranges::none_of(attempts, has_bytes)) {
    co_return fail(conflict("nothing_to_send",
                            "every known attempt was signed outside Fencepost, so there are no bytes to send; send "
                            "them where they were signed, or cancel"));
  }
  const OperatorAct act{
      *lease,
      tx_id,
      "resend",
      who.reason,
      who.actor,
      boost::json::serialize(boost::json::object{{"nonce", *tx->nonce}, {"chainNonce", proof->chain_count}})};
  Reopening reopening{.from = tx->state, .proof = std::move(*proof), .cancel = std::nullopt};
  const auto outcome = co_await reopen(database_.pool(), leases_.identity().node_id, act, std::move(reopening));
  co_return co_await settle(outcome, tx_id, act);
}

awaitable<Result<ManagedTx>> OperatorService::cancel_ended(ManagedTx tx, SignerLease lease, Operator who) {
  if (!tx.nonce) co_return fail(wrong_state(tx, "it has ended and has no nonce, so there is nothing to cancel"));
  auto* chain = chains_.at(tx.key.chain_id);
  auto proof = co_await on_loop(chain->home, [chain, tx] { return prove_undone(*chain, tx); });
  if (!proof) co_return fail(proof.error());
  if (auto undone = check_undone(tx, *proof, true); !undone) {
    undone.error().code = "wrong_state";
    co_return fail(undone.error());
  }
  auto claim = co_await sign_cancel(tx, lease);
  if (!claim) co_return fail(claim.error());
  const OperatorAct act{lease,
                        tx.tx_id,
                        "cancel",
                        who.reason,
                        who.actor,
                        boost::json::serialize(boost::json::object{
                            {"txHash", claim->tx_hash}, {"nonce", *tx.nonce}, {"chainNonce", proof->chain_count}})};
  Reopening reopening{.from = tx.state, .proof = std::move(*proof), .cancel = std::move(*claim)};
  const auto outcome = co_await reopen(database_.pool(), leases_.identity().node_id, act, std::move(reopening));
  co_return co_await settle(outcome, tx.tx_id, act);
}

awaitable<Result<ManagedTx>> OperatorService::cancel_created(ManagedTx tx, SignerLease lease, Operator who) {
  const OperatorAct act{lease, tx.tx_id, "cancel", who.reason, who.actor};
  const auto outcome = co_await cancel_waiting(database_.pool(), leases_.identity().node_id, act);
  co_return co_await settle(outcome, tx.tx_id, act);
}

awaitable<Error> OperatorService::why_nothing_to_reconcile(SignerLease lease) {
  const auto cursors = co_await read_cursors(database_.pool(), {lease}, std::chrono::milliseconds(0));
  const bool waits = !cursors.empty() && cursors.front().reason;
  if (!waits || !cursors.front().gap_nonce) {
    co_return conflict("nothing_to_reconcile",
                       "the chain is not ahead of the signer's cursor, as far as this node has seen; nothing was "
                       "changed");
  }
  const auto& cursor = cursors.front();
  auto error = conflict("nothing_to_reconcile", fmt::format("nothing was changed, because the chain is not ahead: {}",
                                                            kReconcileReasons.meaning(*cursor.reason)));
  error.with("reason", std::string(kReconcileReasons.name(*cursor.reason)))
      .with("gapNonce", std::to_string(*cursor.gap_nonce));
  std::vector<std::string> ids;
  const auto undone = co_await find_undone(database_.pool(), lease.key, *cursor.gap_nonce, kUndoneNamed);
  ids.reserve(undone.size());
  for (const auto& id : undone) ids.push_back(id.to_string());
  if (!ids.empty()) error.with("undone", fmt::format("{}", fmt::join(ids, " ")));
  co_return error;
}

awaitable<Result<OperatorService::CursorReset>> OperatorService::reset_cursor(SignerKey key, std::int64_t next_nonce,
                                                                              Operator who) {
  const auto lease = co_await lease_of(key);
  if (!lease) co_return fail(lease.error());
  auto* chain = chains_.at(key.chain_id);
  auto plan = co_await plan_reset(database_.pool(), key, next_nonce, kSendingPatience);
  if (!plan) co_return fail(reset_refused("no_cursor", "the signer has no nonce cursor yet"));
  const auto proof = co_await on_loop(
      chain->home, [chain, key, next_nonce, plan = *plan] { return prove_reset(*chain, key, next_nonce, plan); });
  if (!proof) co_return fail(proof.error());
  const OperatorAct act{*lease, std::nullopt, "reset_cursor", who.reason, who.actor, boost::json::serialize(*proof)};
  const auto done =
      co_await tx::reset_cursor(database_.pool(), leases_.identity().node_id, act, next_nonce, std::move(*plan));
  if (done.outcome == StepOutcome::kFenced) {
    leases_.lost(*lease);
    co_return fail(not_leader("this node lost the lease during the request"));
  }
  if (done.outcome == StepOutcome::kMoved) {
    co_return fail(reset_refused("changed", "the signer's transactions changed during this request; retry"));
  }
  actions_total(metrics_, *chain, act.action).Increment();
  test_point("operator.committed");
  log::warn("operator action", {{"action", act.action},
                                {"signer", key.signer},
                                {"nodeId", leases_.identity().node_id},
                                {"fencingToken", lease->fencing_token},
                                {"actor", who.actor},
                                {"reason", who.reason},
                                {"nextNonce", next_nonce},
                                {"givenUp", done.given_up},
                                {"released", done.released}});
  chain->wake_promoter(std::nullopt);
  chain->look_for_gaps();
  co_return CursorReset{.next_nonce = next_nonce, .given_up = done.given_up, .released = done.released};
}

}  // namespace fencepost::tx
