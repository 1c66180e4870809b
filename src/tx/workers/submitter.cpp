#include "tx/workers/submitter.hpp"

#include <algorithm>
#include <map>

#include "runtime/gather.hpp"
#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/model/payload.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kSubmitsAtOnce = 1'000;
constexpr std::chrono::seconds kSubmitInterval{1};
constexpr std::size_t kFreshLimit = 10'000;

// Whether to sign: never signed yet, or the fee was refused and no endpoint can have the transaction.
bool needs_signing(const DueSubmit& due) {
  if (!due.raw) return true;
  const bool fee = due.sub_state == SubState::kFeeTooLow || due.sub_state == SubState::kUnderpriced;
  return fee && due.outcome == AttemptOutcome::kRefused;
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

Submitter::Submitter(ChainContext& chain)
    : chain_(chain),
      fees_(make_fee_policy(chain.connector, chain.follower, chain.options.fees)),
      lanes_{{Lane(*this, 0), Lane(*this, 1)}} {
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
  std::vector<Step> unsendable;
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
  co_await chain_.apply(std::move(unsendable));
  auto again = co_await claim_again(std::move(unchanged));
  std::ranges::move(again, std::back_inserter(out));
  co_return out;
}

awaitable<std::vector<Submitter::Priced>> Submitter::price(std::vector<DueSubmit> due, std::vector<Step>& unsendable) {
  std::vector<Payload> payloads;
  payloads.reserve(due.size());
  for (const auto& tx : due) payloads.push_back(stored_payload(tx.payload));
  const auto offers = co_await fees_->offers(payloads);
  std::vector<Priced> out;
  for (std::size_t i = 0; i < due.size(); ++i) {
    const auto& offer = offers[i];
    if (offer) {
      auto transaction = build_transaction(payloads[i], chain_.chain_id(), due[i].nonce,
                                           static_cast<std::uint64_t>(due[i].gas_limit), *offer);
      out.push_back({std::move(due[i]), *offer, std::move(transaction)});
    } else if (offer.error().kind == ErrorKind::kUnavailable) {
      unsendable.push_back(waits(due[i], SubState::kFeesUnknown, offer.error().message));
    } else {
      unsendable.push_back(stuck(due[i], SubState::kNoDynamicFees, offer.error().message));
    }
  }
  co_return out;
}

awaitable<std::vector<Submitter::Signed>> Submitter::sign(std::vector<Priced> priced, std::vector<Step>& unsendable) {
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
        unsendable.push_back(waits(due, SubState::kSignerUnavailable, result.error().message));
      } else {
        unsendable.push_back(stuck(due, SubState::kBadTransaction, result.error().message));
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
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool done = outcomes[i] == StepOutcome::kDone && steps[i].to == TxState::kTracking;
    if (!done) continue;
    remember(out[i]);
    accepted.push_back(std::move(out[i].due.lease.key.signer));
  }
  co_return accepted;
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
    case evm::SubmitClass::kIntrinsicGas:
    case evm::SubmitClass::kReverted:
    case evm::SubmitClass::kInvalid:
      co_return stuck(tx.due, answer, result.message);
    default:
      break;
  }
  auto step = waits(tx.due, answer, result.message);
  const bool refused = result.outcome == evm::SubmitClass::kFeeTooLow ||
                       result.outcome == evm::SubmitClass::kUnderpriced ||
                       result.outcome == evm::SubmitClass::kInsufficientFunds;
  const bool no_endpoint_has_it =
      !tx.sent_before && (result.reach == evm::Reach::kNowhere || (refused && result.reach == evm::Reach::kAnswered));
  step.attempt_outcome = no_endpoint_has_it ? AttemptOutcome::kRefused : AttemptOutcome::kUnknown;
  step.expect_claims = tx.claims;
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

// Retries later. Of several failures in a row, only the first is written to the history.
Step Submitter::waits(const DueSubmit& due, SubState sub_state, std::string message) const {
  Step step(due.lease, due.tx_id, TxState::kAllocated, TxState::kAllocated, "will be retried: " + message);
  step.quiet = due.retry_count > 0;
  step.expect_receipt_hash = "";
  step.sub_state = sub_state;
  step.error = std::move(message);
  step.failed_try = true;
  step.due_in = ChainContext::retry_delay(due.retry_count);
  return step;
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
