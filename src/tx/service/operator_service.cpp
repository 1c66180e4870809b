#include "tx/service/operator_service.hpp"

#include <algorithm>

#include <boost/json/serialize.hpp>

#include "http/errors.hpp"
#include "runtime/log.hpp"
#include "runtime/on_loop.hpp"
#include "runtime/test_point.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/gas.hpp"
#include "tx/service/give_up.hpp"
#include "tx/service/operator_errors.hpp"
#include "tx/store/give_up_store.hpp"
#include "tx/store/operator_store.hpp"

namespace fencepost::tx {
namespace {

using http::unprocessable;

constexpr std::chrono::milliseconds kOperatorLooksAgain{250};

awaitable<Result<evm::Fees>> current_offer(ChainContext& chain, FeeRequest request) {
  std::vector<FeeRequest> one;
  one.push_back(std::move(request));
  auto offers = co_await chain.fees->offers(std::move(one));
  co_return std::move(offers.front());
}

// The first field in which the transaction on the chain differs from ours; nullopt when it has the same sender, nonce
// and payload. A recorded transaction counts as ours, so it must do exactly what the caller asked for.
std::optional<std::string> difference(const ManagedTx& ours, const evm::TransactionInfo& theirs) {
  if (theirs.from != ours.key.signer) return "sender";
  if (theirs.nonce != *ours.nonce) return "nonce";
  if (ours.sub_state == kSubStates.name(SubState::kExternal)) return "owner";
  const auto payload = stored_payload(boost::json::serialize(ours.payload));
  if (theirs.to != payload.to) return "recipient";
  if (theirs.value != payload.value.value_or(Uint256(0))) return "value";
  if (theirs.data != payload.data.value_or("0x")) return "data";
  return std::nullopt;
}

// A transfer of value 0 to the signer itself: uses up a nonce without effect, for a cancel or a gap.
Payload self_transfer(const std::string& signer, std::int64_t gas) {
  Payload payload;
  payload.to = signer;
  payload.value = Uint256(0);
  payload.gas = static_cast<std::uint64_t>(gas);
  return payload;
}

}  // namespace

OperatorService::OperatorService(const TxOptions& options, pg::Database& database,
                                 std::map<std::int64_t, ChainContext*> chains, evm::KeyRing& keys, LeaseManager& leases,
                                 LeaseWatch& watch, UuidGenerator& ids, Metrics& metrics)
    : gas_margin_percent_(options.gas_margin_percent),
      patience_(options.forward_timeout),
      database_(database),
      chains_(std::move(chains)),
      keys_(keys),
      leases_(leases),
      watch_(watch),
      ids_(ids),
      metrics_(metrics) {
  for (const auto& [id, chain] : chains_) {
    for (const auto* action : {"rebroadcast", "record_hash", "cancel", "resend", "give_up", "fill_nonce",
                               "accept_reconcile", "reset_cursor"}) {
      actions_total(metrics_, *chain, action);
    }
  }
}

awaitable<Error> OperatorService::no_key(SignerKey key) {
  auto error = conflict("no_key", "this node has no key of the signer, and the action needs it");
  const auto holder = co_await leases_.key_holder(std::move(key));
  if (!holder) co_return error;
  co_return naming(std::move(error), *holder);
}

awaitable<Result<void>> OperatorService::check_served(SignerKey key, Needs needs) {
  if (!chains_.contains(key.chain_id)) {
    const auto holder = co_await leases_.chain_holder(key.chain_id);
    if (holder) {
      co_return fail(naming(not_leader("the chain is not configured on this node"), *holder));
    }
    co_return fail(conflict("chain_not_configured", "no live node has this chain configured; add it to a node")
                       .with("chainId", std::to_string(key.chain_id)));
  }
  if (leases_.can_sign(key)) co_return Result<void>();
  const auto used = co_await find_leases(database_.pool(), {key}, leases_.options().times);
  if (!used.front()) {
    co_return fail(not_found("no_such_signer", "this node has no key for the signer, and it was never used"));
  }
  if (needs == Needs::kKey) co_return fail(co_await no_key(std::move(key)));
  co_return Result<void>();
}

awaitable<Result<SignerLease>> OperatorService::lease_of(SignerKey key, Needs needs) {
  if (auto served = co_await check_served(key, needs); !served) co_return fail(served.error());
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  for (;;) {
    auto leader = co_await leases_.lead(key);
    if (auto* lease = std::get_if<SignerLease>(&leader)) co_return std::move(*lease);
    const auto& other = std::get<LeaseView>(leader);
    if (leases_.is_alive(other)) {
      co_return fail(naming(not_leader("another node leads this signer"), other));
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) co_return fail(no_leader());
    co_await watch_.moved(other, std::min(deadline, now + kOperatorLooksAgain));
  }
}

awaitable<Result<std::pair<ManagedTx, SignerLease>>> OperatorService::open_tx(Uuid tx_id, Needs needs) {
  auto tx = co_await find_tx(database_.pool(), tx_id);
  if (!tx) co_return fail(no_such_tx());
  auto lease = co_await lease_of(tx->key, needs);
  if (!lease) co_return fail(lease.error());
  if (kManagedTx.terminal(tx->state) || tx->mined() || tx->state == TxState::kCreated) {
    co_return fail(wrong_state(*tx, "expected a transaction with a nonce and without a receipt"));
  }
  co_return std::pair(std::move(*tx), std::move(*lease));
}

awaitable<Result<ManagedTx>> OperatorService::find_again(Uuid tx_id) {
  auto tx = co_await find_tx(database_.pool(), tx_id);
  if (!tx) co_return fail(no_such_tx());
  co_return std::move(*tx);
}

awaitable<Result<ManagedTx>> OperatorService::settle(StepOutcome outcome, Uuid tx_id, const OperatorAct& act) {
  auto* chain = chains_.at(act.lease.key.chain_id);
  actions_total(metrics_, *chain, act.action).Increment();
  if (outcome == StepOutcome::kFenced) {
    leases_.lost(act.lease);
    co_return fail(not_leader("this node lost the lease during the request"));
  }
  if (outcome == StepOutcome::kMoved) co_return fail(moved_meanwhile());
  test_point("operator.committed");
  log::warn("operator action", {{"action", act.action},
                                {"txId", tx_id.to_string()},
                                {"signer", act.lease.key.signer},
                                {"nodeId", leases_.identity().node_id},
                                {"fencingToken", act.lease.fencing_token},
                                {"actor", act.actor},
                                {"reason", act.reason}});
  chain->changes.raise(std::span(&tx_id, 1));
  chain->wake_submitter(std::nullopt);
  chain->wake_resubmitter();
  chain->wake_receipts();
  chain->wake_promoter(std::vector{act.lease.key.signer});
  chain->look_for_gaps();
  co_return co_await find_again(tx_id);
}

awaitable<Result<ManagedTx>> OperatorService::rebroadcast(Uuid tx_id, Operator who) {
  const auto open = co_await open_tx(tx_id);
  if (!open) co_return fail(open.error());
  const auto& [tx, lease] = *open;
  if (tx.state == TxState::kStuck && !tx.tx_hash) {
    co_return fail(wrong_state(tx, "it was never signed, so there is nothing to broadcast"));
  }
  const auto attempts = co_await list_attempts(database_.pool(), tx_id);
  const bool nothing_signed = std::ranges::none_of(attempts, has_bytes);
  if (nothing_signed && !leases_.can_sign(tx.key)) co_return fail(co_await no_key(tx.key));
  if (nothing_signed && tx.state != TxState::kAllocated) {
    co_return fail(conflict("nothing_to_send",
                            "every known attempt was signed outside Fencepost, so there are no bytes to broadcast; "
                            "broadcast them where they were signed, or cancel"));
  }
  const OperatorAct act{lease, tx_id, "rebroadcast", who.reason, who.actor};
  const auto outcome = co_await rebroadcast_now(database_.pool(), leases_.identity().node_id, act, tx.state);
  co_return co_await settle(outcome, tx_id, act);
}

awaitable<Result<ManagedTx>> OperatorService::record_hash(Uuid tx_id, std::string tx_hash, Operator who) {
  const auto open = co_await open_tx(tx_id);
  if (!open) co_return fail(open.error());
  const auto& [tx, lease] = *open;
  auto* chain = chains_.at(tx.key.chain_id);
  const auto known =
      co_await on_loop(chain->home, [chain, tx_hash] { return chain->connector.transaction(tx_hash, {}); });
  if (!known) co_return fail(known.error());
  if (!*known) {
    co_return fail(
        unprocessable("hash_unknown", "the chain does not know this txHash; check it, or retry after its broadcast"));
  }
  if (const auto other = difference(tx, **known)) {
    co_return fail(unprocessable("hash_mismatch", "the transaction with this txHash has another " + *other)
                       .with("differsIn", *other));
  }
  const OperatorAct act{lease,      tx_id,     "record_hash",
                        who.reason, who.actor, boost::json::serialize(boost::json::object{{"txHash", tx_hash}})};
  const auto outcome = co_await record_attempt(database_.pool(), leases_.identity().node_id, act, tx.state, tx_hash);
  co_return co_await settle(outcome, tx_id, act);
}

awaitable<Result<Claim>> OperatorService::sign_cancel(ManagedTx tx, SignerLease lease) {
  auto* chain = chains_.at(tx.key.chain_id);
  const auto gas = co_await self_transfer_gas(*chain, tx.key.signer, gas_margin_percent_);
  if (!gas) co_return fail(gas.error());
  const auto payload = self_transfer(tx.key.signer, *gas);
  const FeeRequest request{payload, chain->options.ceiling_of(tx.key.signer).per_gas(*payload.gas)};
  auto fees = co_await on_loop(chain->home, [chain, request] { return current_offer(*chain, request); });
  if (!fees) co_return fail(fees.error());
  const auto attempts = co_await list_attempts(database_.pool(), tx.tx_id);
  for (const auto& attempt : attempts) {
    if (!attempt.fees) continue;
    fees = cancel_price(stored_fees(boost::json::serialize(*attempt.fees)), *fees);
    if (!fees) co_return fail(fees.error());
  }
  fees = within_ceiling(*fees, request.ceiling);
  if (!fees) co_return fail(fees.error());
  auto* signer = keys_.find(tx.key.signer);
  const auto signed_one =
      co_await signer->sign(build_transaction(payload, tx.key.chain_id, *tx.nonce, *payload.gas, *fees));
  if (!signed_one) co_return fail(signed_one.error());
  co_return Claim{.lease = std::move(lease),
                  .tx_id = tx.tx_id,
                  .from = tx.state,
                  .previous_hash = tx.tx_hash,
                  .tx_hash = to_hex0x(signed_one->hash),
                  .kind = AttemptKind::kCancel,
                  .raw = signed_one->raw,
                  .fees = fees_json(*fees)};
}

awaitable<Result<ManagedTx>> OperatorService::cancel(Uuid tx_id, Operator who) {
  auto found = co_await find_tx(database_.pool(), tx_id);
  if (!found) co_return fail(no_such_tx());
  auto leader = co_await lease_of(found->key, found->state == TxState::kCreated ? Needs::kNoKey : Needs::kKey);
  if (!leader) co_return fail(leader.error());
  if (found->state == TxState::kCreated) co_return co_await cancel_created(*found, *leader, std::move(who));
  if (kManagedTx.terminal(found->state)) co_return co_await cancel_ended(*found, *leader, std::move(who));
  const auto open = co_await open_tx(tx_id, Needs::kKey);
  if (!open) co_return fail(open.error());
  const auto& [tx, lease] = *open;
  auto claim = co_await sign_cancel(tx, lease);
  if (!claim) co_return fail(claim.error());
  const OperatorAct act{lease,      tx_id,     "cancel",
                        who.reason, who.actor, boost::json::serialize(boost::json::object{{"txHash", claim->tx_hash}})};
  const auto outcome = co_await store_cancel(database_.pool(), leases_.identity().node_id, act, std::move(*claim));
  co_return co_await settle(outcome, tx_id, act);
}

awaitable<Result<ManagedTx>> OperatorService::give_up(Uuid tx_id, Operator who) {
  const auto tx = co_await find_tx(database_.pool(), tx_id);
  if (!tx) co_return fail(no_such_tx());
  const auto lease = co_await lease_of(tx->key);
  if (!lease) co_return fail(lease.error());
  if (tx->state != TxState::kStuck || tx->sub_state != kSubStates.name(SubState::kNonceTaken)) {
    co_return fail(wrong_state(*tx, "expected a STUCK transaction with sub state nonce_taken"));
  }
  auto attempts = co_await list_attempts(database_.pool(), tx_id);
  auto* chain = chains_.at(tx->key.chain_id);
  auto proof = co_await on_loop(chain->home, [chain, tx = *tx, attempts] { return prove_taken(*chain, tx, attempts); });
  if (!proof) co_return fail(proof.error());
  const OperatorAct act{*lease, tx_id, "give_up", who.reason, who.actor, boost::json::serialize(proof->facts)};
  const auto outcome =
      co_await tx::give_up(database_.pool(), leases_.identity().node_id, act, std::move(proof->hashes));
  co_return co_await settle(outcome, tx_id, act);
}

awaitable<Result<ManagedTx>> OperatorService::fill_nonce(SignerKey key, std::int64_t nonce, Operator who) {
  const auto lease = co_await lease_of(key, Needs::kKey);
  if (!lease) co_return fail(lease.error());
  const auto gas = co_await self_transfer_gas(*chains_.at(key.chain_id), key.signer, gas_margin_percent_);
  if (!gas) co_return fail(gas.error());
  const auto payload = self_transfer(key.signer, *gas);
  const auto tx_id = ids_.next();
  const OperatorAct act{*lease,     tx_id,     "fill_nonce",
                        who.reason, who.actor, boost::json::serialize(boost::json::object{{"nonce", nonce}})};
  const auto outcome = co_await fill_gap(database_.pool(), leases_.identity().node_id, act,
                                         {.tx_id = tx_id,
                                          .nonce = nonce,
                                          .payload = payload.canonical(),
                                          .payload_hash = payload.hash(),
                                          .gas_limit = *gas});
  if (outcome == StepOutcome::kMoved) {
    const auto holder = co_await find_tx_at(database_.pool(), key, nonce);
    if (!holder)
      co_return fail(conflict("nonce_unused", "this nonce is not below the cursor, so there is no gap to fill"));
    co_return fail(conflict("nonce_taken", "a transaction already has this nonce; cancel that transaction instead")
                       .with("txId", holder->to_string()));
  }
  co_return co_await settle(outcome, tx_id, act);
}

awaitable<Result<std::int64_t>> OperatorService::accept_reconcile(SignerKey key, Operator who) {
  const auto lease = co_await lease_of(key);
  if (!lease) co_return fail(lease.error());
  auto* chain = chains_.at(key.chain_id);
  const auto nonces = co_await on_loop(
      chain->home, [chain, signer = key.signer] { return chain->chain_nonces({signer}, evm::NonceTag::kPending); });
  if (!nonces.front()) co_return fail(nonces.front().error());
  const OperatorAct act{
      *lease,     std::nullopt, "accept_reconcile",
      who.reason, who.actor,    boost::json::serialize(boost::json::object{{"chainNonce", *nonces.front()}})};
  const auto accepted = co_await accept_chain_nonce(database_.pool(), leases_.identity().node_id, act, *nonces.front());
  if (accepted.outcome == StepOutcome::kFenced) {
    leases_.lost(*lease);
    co_return fail(not_leader("this node lost the lease during the request"));
  }
  if (accepted.outcome == StepOutcome::kMoved) co_return fail(co_await why_nothing_to_reconcile(*lease));
  actions_total(metrics_, *chain, act.action).Increment();
  test_point("operator.committed");
  log::warn("operator action", {{"action", "accept_reconcile"},
                                {"signer", key.signer},
                                {"nodeId", leases_.identity().node_id},
                                {"fencingToken", lease->fencing_token},
                                {"actor", who.actor},
                                {"reason", who.reason},
                                {"nextNonce", accepted.next_nonce}});
  chain->wake_promoter(std::nullopt);
  co_return accepted.next_nonce;
}

}  // namespace fencepost::tx
