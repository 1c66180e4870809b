// The part of the stuck watcher for transactions that no endpoint has: those that can never be sent give their nonce
// back, and those whose cause is gone go back to ALLOCATED.
#include <boost/json/serialize.hpp>

#include "runtime/test_point.hpp"
#include "tx/service/known_attempts.hpp"
#include "tx/workers/stuck_watcher.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kFillTries = 500;            // that are remembered
constexpr std::chrono::seconds kFillInterval{60};  // between two cancels of one transaction, if the first one fails

Payload payload_of(const ManagedTx& tx) {
  return stored_payload(boost::json::serialize(tx.payload));
}

// Whether the transaction can never be sent as it is. Fencepost lowers its own cap, and never the caller's.
bool is_hopeless(SubState reason, const Payload& payload) {
  switch (reason) {
    case SubState::kFeeCapExceeded:
      return payload.has_own_fees();
    case SubState::kNoDynamicFees:
    case SubState::kBadTransaction:
    case SubState::kIntrinsicGas:
    case SubState::kInvalid:
    case SubState::kReverted:
      return true;
    default:
      return false;
  }
}

Step resume_step(const OpenHead& head, const std::string& why) {
  Step step(head.lease, head.tx_id, TxState::kStuck, TxState::kAllocated, why);
  step.expect_receipt_hash = "";
  step.expect_unsent = true;
  step.sub_state = SubState::kNone;
  step.error = "";
  step.reset_tries = true;
  step.due_in = std::chrono::milliseconds(0);
  step.events.emplace_back(TxEvent::kResumed, resumed_json(head.lease.key, head.tx_id, head.nonce, step.to, why));
  return step;
}

}  // namespace

awaitable<> StuckWatcher::look_at_unsent(const std::vector<OpenHead>& heads) {
  std::vector<Step> steps;
  std::vector<std::string> signers;
  for (const auto& head : heads) {
    if (head.state != TxState::kStuck || !head.unsent) continue;
    const auto tx = co_await find_tx(chain_.database.pool(), head.tx_id);
    if (!tx) continue;
    if (is_hopeless(head.sub_state, payload_of(*tx))) {
      co_await release_or_fill(head, tx->error_message.value_or(""));
    } else if (const auto why = co_await why_it_may_go_on(head, *tx)) {
      steps.push_back(resume_step(head, *why));
      signers.push_back(head.lease.key.signer);
    }
  }
  if (steps.empty()) co_return;
  co_await chain_.apply(std::move(steps));
  test_point("heads.resumed");
  chain_.wake_submitter(std::move(signers));
}

awaitable<> StuckWatcher::release_or_fill(OpenHead head, std::string message) {
  const auto outcome = co_await chain_.reject({.lease = head.lease,
                                               .tx_id = head.tx_id,
                                               .from = TxState::kStuck,
                                               .reason = head.sub_state,
                                               .message = message});
  if (outcome != StepOutcome::kMoved || !chain_.options.fees.fill_rejected) co_return;
  const auto now = SteadyClock::real().now();
  if (fill_tries_.size() > kFillTries) fill_tries_.clear();
  const auto tried = fill_tries_.find(head.tx_id);
  if (tried != fill_tries_.end() && now - tried->second < kFillInterval) co_return;
  fill_tries_[head.tx_id] = now;
  // A cancel is safe in any case: one nonce is mined once. It is needless if an endpoint shows the transaction.
  if (co_await may_be_shown(chain_, head.tx_id)) co_return;
  co_await chain_.cancel_rejected(head.tx_id, message);
}

// Why the transaction may be sent now; nullopt while the cause is there, or is not known to be gone.
awaitable<std::optional<std::string>> StuckWatcher::why_it_may_go_on(OpenHead head, ManagedTx tx) {
  switch (head.sub_state) {
    case SubState::kInsufficientFunds:
      if (co_await is_funded(std::move(head), std::move(tx))) co_return "the signer can pay again: it is priced anew";
      co_return std::nullopt;
    case SubState::kTransient:
    case SubState::kFeeTooLow:
    case SubState::kUnderpriced:
    case SubState::kFeeCapExceeded:
    case SubState::kNonceTooHigh:
      if (!may_try_again(head)) co_return std::nullopt;
      [[fallthrough]];
    case SubState::kFeesUnknown: {
      const auto offer = co_await current_price(std::move(tx));
      // Any other answer is one of an endpoint, too: the submitter acts on it.
      if (!offer.price && offer.price.error().kind == ErrorKind::kUnavailable) co_return std::nullopt;
      co_return "the endpoints answer: it is priced anew";
    }
    case SubState::kSignerUnavailable:
      if (chain_.keys.find(head.lease.key.signer) == nullptr) co_return std::nullopt;
      co_return "this node has the signer's key: it is signed";
    default:
      co_return std::nullopt;
  }
}

// When an outage has ended since it became STUCK. Endpoints that answer and refuse for the moment (a full pool, a price
// that may fall) are tried again as late as `stuck.after`, so that the alarm stays up.
bool StuckWatcher::may_try_again(const OpenHead& head) const {
  const auto& endpoints = chain_.evm_chain.endpoints();
  const auto changed = endpoints.changed_at();
  const bool outage_is_over = endpoints.usable() && changed && SteadyClock::real().now() - *changed < head.since_step;
  return outage_is_over || head.since_step >= chain_.options.stuck_after;
}

awaitable<StuckWatcher::Offer> StuckWatcher::current_price(ManagedTx tx) {
  FeeRequest request{.payload = payload_of(tx)};
  const auto value = request.payload.value.value_or(0);
  std::vector<FeeRequest> one;
  one.push_back(std::move(request));
  auto offers = co_await chain_.fees->offers(std::move(one));
  co_return Offer{value, static_cast<std::uint64_t>(tx.gas_limit), std::move(offers.front())};
}

// False while the balance does not cover value and fees at the current price, or either is unknown.
awaitable<bool> StuckWatcher::is_funded(OpenHead head, ManagedTx tx) {
  const auto offer = co_await current_price(std::move(tx));
  if (!offer.price) co_return false;
  const auto balances = co_await chain_.connector.balances({head.lease.key.signer});
  if (!balances.front()) co_return false;
  const auto cost = cost_of(offer.value, offer.gas, *offer.price);
  co_return cost && *cost <= *balances.front();
}

}  // namespace fencepost::tx
