#include "tx/workers/submitter.hpp"

#include <algorithm>
#include <map>

#include "evm/broadcast.hpp"
#include "runtime/gather.hpp"
#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/model/payload.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kSubmitsAtOnce = 1'000;
constexpr std::chrono::seconds kSubmitInterval{1};
constexpr std::size_t kFreshLimit = 10'000;

// While the fee is above the ceiling, it is compared again after at most this long: once per block is enough.
constexpr std::chrono::milliseconds kCeilingPatience{5'000};

// Whether to sign: never signed yet, or refused, so that no endpoint can have it. What was refused because of the
// endpoint or of a lower nonce is sent again as it is.
bool needs_signing(const DueSubmit& due) {
  if (!due.raw) return true;
  const bool bytes_are_good = due.sub_state == SubState::kTransient || due.sub_state == SubState::kNonceTooHigh;
  return due.outcome == AttemptOutcome::kRefused && !bytes_are_good;
}

// The cap of the attempt that the endpoints refused as too high.
std::optional<Uint256> refused_cap(const DueSubmit& due) {
  if (due.sub_state != SubState::kFeeCapExceeded || due.outcome != AttemptOutcome::kRefused || !due.fees) {
    return std::nullopt;
  }
  const auto fees = stored_fees(*due.fees);
  if (const auto* legacy = std::get_if<evm::LegacyFees>(&fees)) return legacy->gas_price;
  return std::get<evm::DynamicFees>(fees).max_fee_per_gas;
}

// An endpoint that simulates may refuse a call that succeeds once an earlier transaction is mined.
bool may_succeed_later(const evm::SendResult& answer) {
  return answer.all_answered && answer.outcome == evm::SubmitClass::kReverted;
}

// Whether every endpoint refused the transaction itself, so that no retry can succeed. Only Fencepost's own cap can be
// lowered.
bool is_hopeless(const DueSubmit& due, const evm::SendResult& answer) {
  if (!answer.all_answered || !evm::is_refused_for_good(answer.outcome) || may_succeed_later(answer)) return false;
  return answer.outcome != evm::SubmitClass::kFeeCapExceeded || stored_payload(due.payload).has_own_fees();
}

}  // namespace

Submitter::Lane::Lane(Submitter& submitter, std::int64_t which)
    : number(which),
      fresh(kFreshLimit),
      hints(kSubmitInterval),
      worker(
          submitter.chain_.home,
          {.name = "tx_submitter",
           .chain = submitter.chain_.evm_chain.name(),
           .interval = kSubmitInterval,
           .stop_grace = ChainContext::kStopGrace},
          [&submitter, this] { return submitter.submit_due(*this); }, submitter.chain_.metrics) {}

Submitter::Submitter(ChainContext& chain) : chain_(chain), lanes_{{Lane(*this, 0), Lane(*this, 1)}} {
  count(to_string(evm::SubmitClass::kAccepted), 0);
}

void Submitter::start() {
  for (auto& lane : lanes_) lane.worker.start();
}

awaitable<> Submitter::stop() {
  std::vector<awaitable<>> stops;
  stops.reserve(lanes_.size());
  for (auto& lane : lanes_) stops.push_back(lane.worker.stop());
  co_await gather(std::move(stops));
}

void Submitter::wake(const SignerHint& hint) {
  std::array<SignerHint, kSubmitLanes> hints;
  if (hint) {
    for (auto& some : hints) some.emplace();
    for (const auto& signer : *hint) hints[static_cast<std::size_t>(submit_lane_of(signer))]->push_back(signer);
  }
  for (auto& lane : lanes_) {
    const auto& some = hints[static_cast<std::size_t>(lane.number)];
    if (some && some->empty()) continue;
    lane.hints.add(some);
    lane.worker.wake();
  }
}

void Submitter::add(std::vector<DueSubmit> numbered) {
  std::array<std::vector<DueSubmit>, kSubmitLanes> fresh;
  for (auto& tx : numbered) {
    fresh[static_cast<std::size_t>(submit_lane_of(tx.lease.key.signer))].push_back(std::move(tx));
  }
  for (auto& lane : lanes_) {
    auto& some = fresh[static_cast<std::size_t>(lane.number)];
    if (some.empty()) continue;
    lane.fresh.add(std::move(some));
    lane.worker.wake();
  }
}

void Submitter::count(std::string_view result, std::size_t n) {
  chain_.metrics
      .counter("tx_submit_total", "First broadcasts",
               {{"chain", chain_.evm_chain.name()}, {"result", std::string(result)}})
      .Increment(static_cast<double>(n));
}

// A signer that has to be looked up is sent as the query shows it: with all that is due, in order.
awaitable<std::vector<DueSubmit>> Submitter::find_due(Lane& lane, bool& full) {
  auto [due, unsure, more] = lane.fresh.take(kSubmitsAtOnce);
  full = more;
  lane.hints.add(std::move(unsure));
  const auto hint = lane.hints.take();
  if (hint && hint->empty()) co_return std::move(due);
  auto found =
      co_await due_submits(chain_.database.pool(), chain_.node(), chain_.chain_id(), hint, kSubmitsAtOnce, lane.number);
  if (found.size() == kSubmitsAtOnce) {
    full = true;
    lane.hints.add(hint);
  }
  std::erase_if(due,
                [&](const DueSubmit& tx) { return !hint || std::ranges::binary_search(*hint, tx.lease.key.signer); });
  std::ranges::move(found, std::back_inserter(due));
  co_return std::move(due);
}

awaitable<Worker::Next> Submitter::submit_due(Lane& lane) {
  bool full = false;
  auto due = co_await find_due(lane, full);
  if (due.empty()) co_return full ? Worker::Next::kAgain : Worker::Next::kRest;
  std::vector<DueSubmit> fresh, again;
  std::map<std::string, Sending> sending;
  for (auto& tx : due) {
    auto& signer = sending[tx.lease.key.signer];
    signer.lease = tx.lease;
    signer.last = std::max(signer.last, tx.nonce);
    ++signer.left;
    (needs_signing(tx) ? fresh : again).push_back(std::move(tx));
  }

  auto out = co_await sign_and_claim(std::move(fresh));
  auto resent = co_await claim_again(std::move(again));
  std::ranges::move(resent, std::back_inserter(out));
  std::ranges::sort(out, [](const Outgoing& a, const Outgoing& b) {
    return std::tie(a.due.lease.key.signer, a.due.nonce) < std::tie(b.due.lease.key.signer, b.due.nonce);
  });
  const bool any = !out.empty();
  if (any) {
    for (const auto& signer : co_await send(std::move(out))) --sending[signer].left;
  }
  for (const auto& [signer, sent] : sending) {
    if (sent.left == 0) lane.fresh.accepted(sent.lease, sent.last);
    if (sent.left > 0) lane.fresh.forget(signer);
  }
  co_return full&& any ? Worker::Next::kAgain : Worker::Next::kRest;
}

awaitable<std::vector<Submitter::Outgoing>> Submitter::sign_and_claim(std::vector<DueSubmit> due) {
  if (due.empty()) co_return std::vector<Outgoing>();
  Unsendable unsendable;
  leave_keyless(due, unsendable);
  auto priced = co_await price(std::move(due), unsendable);
  auto all = co_await sign(std::move(priced), unsendable);

  // Signing is deterministic: at an unchanged price the bytes equal the stored ones.
  std::vector<Signed> fresh;
  std::vector<DueSubmit> unchanged;
  for (auto& tx : all) {
    if (tx.tx_hash == tx.due.tx_hash) {
      unchanged.push_back(std::move(tx.due));
    } else {
      fresh.push_back(std::move(tx));
    }
  }
  auto out = co_await claim(std::move(fresh));
  co_await chain_.apply(std::move(unsendable.steps));
  co_await give_up(std::move(unsendable.hopeless));
  auto again = co_await claim_again(std::move(unchanged));
  std::ranges::move(again, std::back_inserter(out));
  co_return out;
}

// Not priced: the fee says nothing while the key is missing.
void Submitter::leave_keyless(std::vector<DueSubmit>& due, Unsendable& unsendable) const {
  std::erase_if(due, [&](const DueSubmit& tx) {
    if (chain_.leases.can_sign(tx.lease.key)) return false;
    unsendable.steps.push_back(
        waits(tx, SubState::kSignerUnavailable, "no live node has the key of the signer; start a node that has it"));
    return true;
  });
}

awaitable<std::vector<Submitter::Priced>> Submitter::price(std::vector<DueSubmit> due, Unsendable& unsendable) {
  std::vector<FeeRequest> requests;
  requests.reserve(due.size());
  for (const auto& tx : due) {
    auto payload = stored_payload(tx.payload);
    const auto ceiling = chain_.options.ceiling_of(tx.lease.key.signer).tightest(ceiling_of(payload));
    requests.push_back(
        {std::move(payload), ceiling.per_gas(static_cast<std::uint64_t>(tx.gas_limit)), refused_cap(tx)});
  }
  const auto began = SteadyClock::real().now();
  const auto offers = co_await chain_.fees->offers(requests);
  std::vector<Priced> out;
  for (std::size_t i = 0; i < due.size(); ++i) {
    const auto& offer = offers[i];
    if (offer) {
      auto transaction = build_transaction(requests[i].payload, chain_.chain_id(), due[i].nonce,
                                           static_cast<std::uint64_t>(due[i].gas_limit), *offer);
      out.push_back({std::move(due[i]), *offer, std::move(transaction)});
    } else if (offer.error().code == "fee_above_ceiling") {
      unsendable.steps.push_back(waits(due[i], SubState::kFeeAboveCeiling, offer.error().message));
    } else if (offer.error().code == "fee_cap_exceeded") {
      unsendable.steps.push_back(waits(due[i], SubState::kFeeCapExceeded, offer.error().message));
    } else if (offer.error().kind == ErrorKind::kUnavailable) {
      unsendable.steps.push_back(waits(due[i], SubState::kFeesUnknown, offer.error().message));
      retry_after_outage(unsendable.steps.back(), began);
    } else {
      unsendable.hopeless.push_back({std::move(due[i]), SubState::kNoDynamicFees, offer.error().message});
    }
  }
  co_return out;
}

awaitable<std::vector<Submitter::Signed>> Submitter::sign(std::vector<Priced> priced, Unsendable& unsendable) {
  std::map<std::string, std::vector<Priced>> by_signer;
  for (auto& tx : priced) by_signer[tx.due.lease.key.signer].push_back(std::move(tx));
  std::vector<Signed> out;
  for (auto& [signer, items] : by_signer) {
    std::vector<evm::Transaction> transactions;
    for (auto& item : items) transactions.push_back(std::move(item.transaction));
    const auto results = co_await sign_for(signer, std::move(transactions));
    for (std::size_t i = 0; i < items.size(); ++i) {
      auto& [due, fees, transaction] = items[i];
      const auto& result = results[i];
      if (result) {
        out.push_back({std::move(due), fees, result->raw, to_hex0x(result->hash)});
      } else if (result.error().kind == ErrorKind::kUnavailable) {
        unsendable.steps.push_back(waits(due, SubState::kSignerUnavailable, result.error().message));
      } else {
        unsendable.hopeless.push_back({std::move(due), SubState::kBadTransaction, result.error().message});
      }
    }
  }
  co_return out;
}

awaitable<std::vector<Result<evm::SignedTransaction>>> Submitter::sign_for(const std::string& signer,
                                                                           std::vector<evm::Transaction> transactions) {
  if (auto* key = chain_.keys.find(signer)) co_return co_await key->sign_all(std::move(transactions));
  const Result<evm::SignedTransaction> none = fail(
      unavailable("signer_unavailable", "this node has no key for the signer; add the key or run a node that has it"));
  co_return std::vector(transactions.size(), none);
}

// The bytes and their hash are stored before any endpoint sees them.
awaitable<std::vector<Submitter::Outgoing>> Submitter::claim(std::vector<Signed> fresh) {
  std::vector<Claim> claims;
  claims.reserve(fresh.size());
  for (const auto& tx : fresh) {
    claims.push_back({.lease = tx.due.lease,
                      .tx_id = tx.due.tx_id,
                      .from = TxState::kAllocated,
                      .previous_hash = tx.due.tx_hash,
                      .tx_hash = tx.tx_hash,
                      .kind = AttemptKind::kOriginal,
                      .raw = tx.raw,
                      .fees = fees_json(tx.fees)});
  }
  const auto claimed = co_await chain_.claim(std::move(claims));
  test_point("submitter.claimed");
  std::vector<Outgoing> out;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (claimed[i].outcome != StepOutcome::kDone) continue;
    out.push_back({.due = std::move(fresh[i].due),
                   .raw = to_hex0x(fresh[i].raw),
                   .tx_hash = std::move(fresh[i].tx_hash),
                   .sent_before = false,
                   .claims = claimed[i].claims,
                   .claimed_at = SteadyClock::real().now()});
  }
  co_return out;
}

// The bytes are already stored: claims only the next broadcast.
awaitable<std::vector<Submitter::Outgoing>> Submitter::claim_again(std::vector<DueSubmit> due) {
  std::vector<Outgoing> out;
  std::vector<Step> steps;
  for (auto& tx : due) {
    Step step(tx.lease, tx.tx_id, TxState::kAllocated, TxState::kAllocated, "sent again");
    step.quiet = true;
    step.expect_receipt_hash = "";
    step.due_in = chain_.claim_patience();
    // The old answer no longer counts, and the new one only if no claim follows this one (docs/correctness.md).
    step.attempt_outcome = AttemptOutcome::kUnknown;
    step.begins_broadcast = true;
    step.expect_claims = tx.claims;
    steps.push_back(std::move(step));
  }
  const auto outcomes = co_await chain_.apply(std::move(steps));
  for (std::size_t i = 0; i < due.size(); ++i) {
    if (outcomes[i] != StepOutcome::kDone) continue;
    out.push_back({.due = due[i],
                   .raw = *due[i].raw,
                   .tx_hash = *due[i].tx_hash,
                   .sent_before = due[i].outcome != AttemptOutcome::kRefused,
                   .claims = due[i].claims + 1,
                   .claimed_at = SteadyClock::real().now()});
  }
  co_return out;
}

awaitable<std::vector<std::string>> Submitter::send(std::vector<Outgoing> out) {
  std::vector<std::string> raw;
  raw.reserve(out.size());
  for (auto& tx : out) raw.push_back(std::move(tx.raw));
  const auto results = co_await chain_.connector.send(std::move(raw));
  test_point("submitter.sent");
  std::vector<Step> steps;
  for (std::size_t i = 0; i < out.size(); ++i) {
    count(to_string(results[i].outcome), 1);
    steps.push_back(co_await judge(out[i], results[i]));
  }
  const auto outcomes = co_await chain_.apply(steps);
  test_point("submitter.committed");
  std::vector<std::string> accepted;
  std::vector<Hopeless> hopeless;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (outcomes[i] != StepOutcome::kDone) continue;
    if (steps[i].to == TxState::kAllocated && is_hopeless(out[i].due, results[i])) {
      hopeless.push_back({std::move(out[i].due), sub_state_of(results[i].outcome), results[i].message});
    }
    if (steps[i].to != TxState::kTracking) continue;
    remember(out[i]);
    accepted.push_back(std::move(out[i].due.lease.key.signer));
  }
  co_await give_up(std::move(hopeless));
  co_return accepted;
}

// The highest nonces first: each release makes the next lower nonce the last one that was assigned.
awaitable<> Submitter::give_up(std::vector<Hopeless> hopeless) {
  std::ranges::sort(hopeless, [](const Hopeless& a, const Hopeless& b) { return a.due.nonce > b.due.nonce; });
  std::vector<Step> steps;
  for (const auto& [due, reason, message] : hopeless) {
    const auto outcome = co_await chain_.reject(
        {.lease = due.lease, .tx_id = due.tx_id, .from = TxState::kAllocated, .reason = reason, .message = message});
    test_point("submitter.rejected");
    if (outcome == StepOutcome::kMoved) steps.push_back(stuck(due, reason, message));
  }
  co_await chain_.apply(std::move(steps));
}

// Only what was claimed once: of other transactions the time of the first claim is not known here.
void Submitter::remember(const Outgoing& tx) {
  if (tx.claims != 1 || tx.due.attempts > 0) return;
  Match match;
  match.lease = tx.due.lease;
  match.tx_id = tx.due.tx_id;
  match.nonce = tx.due.nonce;
  match.attempt_hash = tx.tx_hash;
  match.outcome = AttemptOutcome::kAccepted;
  chain_.sent.add(std::move(match), tx.claimed_at);
}

awaitable<Step> Submitter::judge(const Outgoing& tx, const evm::SendResult& result) {
  const auto answer = sub_state_of(result.outcome);
  switch (result.outcome) {
    case evm::SubmitClass::kAccepted:
      co_return accepted(tx, "accepted by the chain");
    case evm::SubmitClass::kKnownTransaction:
      co_return accepted(tx, "the chain has it already");
    case evm::SubmitClass::kNonceTooLow: {
      const auto known = co_await chain_.connector.transaction(tx.tx_hash);
      if (known && *known) co_return accepted(tx, "the chain has it already");
      chain_.wake_stuck_watcher();  // finds out whether another sender has taken the nonce
      auto step = waits(tx.due, answer, result.message);
      step.attempt_outcome = AttemptOutcome::kUnknown;
      co_return step;
    }
    default:
      break;
  }
  const bool hopeless = is_hopeless(tx.due, result);
  // While an endpoint has not answered, the refusal of the others may be wrong: the same bytes are sent again.
  const bool may_be_lowered =
      result.outcome == evm::SubmitClass::kFeeCapExceeded && !stored_payload(tx.due.payload).has_own_fees();
  const bool later = may_succeed_later(result);
  const bool doubtful = !hopeless && !may_be_lowered && !later && evm::is_refused_for_good(result.outcome);
  const bool refused = hopeless || doubtful || later || result.outcome == evm::SubmitClass::kFeeTooLow ||
                       result.outcome == evm::SubmitClass::kUnderpriced ||
                       result.outcome == evm::SubmitClass::kFeeCapExceeded ||
                       result.outcome == evm::SubmitClass::kInsufficientFunds;
  const bool no_endpoint_has_it =
      !tx.sent_before && (result.reach == evm::Reach::kNowhere || (refused && result.reach == evm::Reach::kAnswered));
  if (result.outcome == evm::SubmitClass::kInsufficientFunds) chain_.balances.forget(tx.due.lease.key.signer);
  // An endpoint may have it after all: an operator decides.
  if (hopeless && !no_endpoint_has_it) co_return stuck(tx.due, answer, result.message);
  auto step = doubtful ? waits(tx.due, SubState::kTransient, result.message + "; not every endpoint has answered")
                       : waits(tx.due, answer, result.message);
  step.quiet = step.quiet || hopeless;  // give_up tells what becomes of it
  step.attempt_outcome = no_endpoint_has_it ? AttemptOutcome::kRefused : AttemptOutcome::kUnknown;
  step.expect_claims = tx.claims;
  if (result.no_answer) retry_after_outage(step, tx.claimed_at);
  co_return step;
}

Step Submitter::accepted(const Outgoing& tx, std::string why) const {
  Step step(tx.due.lease, tx.due.tx_id, TxState::kAllocated, TxState::kTracking, std::move(why));
  step.expect_receipt_hash = "";
  step.sub_state = SubState::kNone;
  step.error = "";
  step.reset_tries = true;
  step.due_in = chain_.until_resubmit();
  step.attempt_outcome = AttemptOutcome::kAccepted;
  step.events.emplace_back(TxEvent::kSubmitted, event_json(tx.due.lease.key, tx.due.tx_id,
                                                           {{"txHash", tx.tx_hash}, {"nonce", tx.due.nonce}}));
  return step;
}

// Retries later. Of several failures in a row, only the first is written to the history, and the first above the
// ceiling.
Step Submitter::waits(const DueSubmit& due, SubState sub_state, std::string message) const {
  Step step(due.lease, due.tx_id, TxState::kAllocated, TxState::kAllocated, "will be retried: " + message);
  const bool above = sub_state == SubState::kFeeAboveCeiling;
  step.quiet = due.retry_count > 0 && (!above || due.sub_state == sub_state);
  step.expect_receipt_hash = "";
  step.sub_state = sub_state;
  step.error = std::move(message);
  step.failed_try = true;
  step.due_in = ChainContext::retry_delay(due.retry_count);
  if (above) step.due_in = std::min(*step.due_in, kCeilingPatience);
  return step;
}

void Submitter::retry_after_outage(Step& step, SteadyClock::TimePoint began) const {
  const auto& endpoints = chain_.evm_chain.endpoints();
  const auto changed = endpoints.changed_at();
  if (endpoints.usable() && changed && *changed >= began) step.due_in = ChainContext::retry_delay(0);
}

Step Submitter::stuck(const DueSubmit& due, SubState sub_state, std::string message) const {
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
