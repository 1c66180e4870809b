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

// Reasons for which a transaction can never be sent as it is.
bool is_hopeless(SubState reason) {
  switch (reason) {
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
    if (is_hopeless(head.sub_state)) co_await release_or_fill(head);
    if (const auto why = co_await why_it_may_go_on(head)) {
      steps.push_back(resume_step(head, *why));
      signers.push_back(head.lease.key.signer);
    }
  }
  if (steps.empty()) co_return;
  co_await chain_.apply(std::move(steps));
  test_point("heads.resumed");
  chain_.wake_submitter(std::move(signers));
}

awaitable<> StuckWatcher::release_or_fill(OpenHead head) {
  const auto tx = co_await find_tx(chain_.database.pool(), head.tx_id);
  if (!tx) co_return;
  const auto message = tx->error_message.value_or("");
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
  if (co_await may_be_known(chain_, head.tx_id)) co_return;
  co_await chain_.cancel_rejected(head.tx_id, message);
}

// Why the transaction may be sent now; nullopt while the cause is there, or is not known to be gone.
awaitable<std::optional<std::string>> StuckWatcher::why_it_may_go_on(OpenHead head) {
  switch (head.sub_state) {
    case SubState::kInsufficientFunds:
      if (co_await is_funded(std::move(head))) co_return "the signer can pay again: it is priced anew";
      co_return std::nullopt;
    case SubState::kTransient:
      if (!may_try_again(head)) co_return std::nullopt;
      [[fallthrough]];
    case SubState::kFeesUnknown: {
      const auto offer = co_await current_price(std::move(head));
      // Any other answer is one of an endpoint, too: the submitter acts on it.
      if (!offer || (!offer->price && offer->price.error().kind == ErrorKind::kUnavailable)) co_return std::nullopt;
      co_return "the endpoints answer again: it is priced anew";
    }
    case SubState::kSignerUnavailable:
      if (chain_.keys.find(head.lease.key.signer) == nullptr) co_return std::nullopt;
      co_return "this node has the signer's key: it is signed";
    default:
      co_return std::nullopt;
  }
}

// When an outage has ended since it became STUCK. An endpoint that answers and refuses for the moment (its pool is
// full) is tried again as late as `stuck.after`, so that the alarm stays up.
bool StuckWatcher::may_try_again(const OpenHead& head) const {
  const auto& endpoints = chain_.evm_chain.endpoints();
  const auto changed = endpoints.changed_at();
  const bool outage_is_over = endpoints.usable() && changed && SteadyClock::real().now() - *changed < head.since_step;
  return outage_is_over || head.since_step >= chain_.options.stuck_after;
}

awaitable<std::optional<StuckWatcher::Offer>> StuckWatcher::current_price(OpenHead head) {
  const auto tx = co_await find_tx(chain_.database.pool(), head.tx_id);
  if (!tx) co_return std::nullopt;
  FeeRequest request{.payload = stored_payload(boost::json::serialize(tx->payload))};
  const auto value = request.payload.value.value_or(0);
  std::vector<FeeRequest> one;
  one.push_back(std::move(request));
  auto offers = co_await chain_.fees->offers(std::move(one));
  co_return Offer{value, static_cast<std::uint64_t>(tx->gas_limit), std::move(offers.front())};
}

// False while the balance does not cover value and fees at the current price, or either is unknown.
awaitable<bool> StuckWatcher::is_funded(OpenHead head) {
  const auto signer = head.lease.key.signer;
  const auto offer = co_await current_price(std::move(head));
  if (!offer || !offer->price) co_return false;
  const auto balances = co_await chain_.connector.balances({signer});
  if (!balances.front()) co_return false;
  const auto cost = cost_of(offer->value, offer->gas, *offer->price);
  co_return cost && *cost <= *balances.front();
}

}  // namespace fencepost::tx
