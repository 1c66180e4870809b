#include "tx/workers/broadcaster.hpp"

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/service/submit_steps.hpp"

namespace fencepost::tx {
namespace {

constexpr std::chrono::seconds kBroadcastInterval{1};

}  // namespace

// Reports its transactions as done when it ends, also by an exception: then none of them counts as accepted.
class Broadcaster::Batch {
 public:
  Batch(Broadcaster& owner, const std::vector<Outgoing>& out) : owner_(owner) {
    for (const auto& tx : out) ++signers_[tx.due.lease.key.signer].count;
  }
  ~Batch() {
    for (const auto& [signer, done] : signers_) {
      owner_.events_.on_done(signer, done.count, done.accepted == done.count);
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void accepted(const std::string& signer) { ++signers_[signer].accepted; }

 private:
  struct Done {
    std::size_t count = 0;
    std::size_t accepted = 0;
  };

  Broadcaster& owner_;
  std::map<std::string, Done> signers_;
};

Broadcaster::Broadcaster(ChainContext& chain, const SignersUnderWay& signers, std::size_t limit, Events events)
    : chain_(chain),
      signers_(signers),
      limit_(limit),
      events_(std::move(events)),
      worker_(
          chain.home,
          {.name = "tx_broadcaster",
           .chain = chain.evm_chain.name(),
           .interval = kBroadcastInterval,
           .stop_grace = ChainContext::kStopGrace,
           .finish_woken = true},
          [this] { return broadcast_waiting(); }, chain.metrics) {
  count(to_string(evm::SubmitClass::kAccepted), 0);
}

void Broadcaster::count(std::string_view result, std::size_t n) {
  chain_.metrics
      .counter("tx_submit_total", "First broadcasts",
               {{"chain", chain_.evm_chain.name()}, {"result", std::string(result)}})
      .Increment(static_cast<double>(n));
}

void Broadcaster::add(std::vector<Outgoing> claimed) {
  if (claimed.empty()) return;
  std::ranges::move(claimed, std::back_inserter(waiting_));
  worker_.wake();
}

awaitable<Worker::Next> Broadcaster::broadcast_waiting() {
  if (waiting_.empty()) co_return Worker::Next::kRest;
  const bool full = room() == 0;
  auto claimed = std::exchange(waiting_, {});
  if (full) events_.on_room();
  Batch batch(*this, claimed);

  std::vector<Outgoing> out;
  std::vector<Step> steps;
  for (auto& tx : claimed) {
    if (signers_.held(tx.due.lease.key.signer)) {
      steps.push_back(held_back(tx));
    } else {
      out.push_back(std::move(tx));
    }
  }
  if (!out.empty()) {
    const auto results = co_await send(out);
    for (std::size_t i = 0; i < out.size(); ++i) steps.push_back(co_await judge(out[i], results[i]));
  }
  const auto outcomes = co_await chain_.apply(steps);
  test_point("submitter.committed");
  const auto first = steps.size() - out.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool done = outcomes[first + i] == StepOutcome::kDone && steps[first + i].to == TxState::kTracking;
    if (!done) continue;
    remember(out[i]);
    batch.accepted(out[i].due.lease.key.signer);
  }
  co_return Worker::Next::kRest;
}

awaitable<std::vector<evm::SendResult>> Broadcaster::send(const std::vector<Outgoing>& out) {
  std::vector<std::string> raw;
  raw.reserve(out.size());
  for (const auto& tx : out) raw.push_back(tx.raw);
  auto results = co_await chain_.connector.send(std::move(raw));
  test_point("submitter.sent");
  for (const auto& result : results) count(to_string(result.outcome), 1);
  co_return results;
}

// Only what was claimed once: of other transactions the time of the first claim is not known here.
void Broadcaster::remember(const Outgoing& tx) {
  if (tx.claims != 1 || tx.due.attempts > 0) return;
  Match match;
  match.lease = tx.due.lease;
  match.tx_id = tx.due.tx_id;
  match.nonce = tx.due.nonce;
  match.attempt_hash = tx.tx_hash;
  match.outcome = AttemptOutcome::kAccepted;
  chain_.sent.add(std::move(match), tx.claimed_at);
}

awaitable<Step> Broadcaster::judge(const Outgoing& tx, const evm::SendResult& result) {
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
      auto step = submit_waits(tx.due, answer, result.message);
      step.attempt_outcome = AttemptOutcome::kUnknown;
      co_return step;
    }
    case evm::SubmitClass::kIntrinsicGas:
    case evm::SubmitClass::kReverted:
    case evm::SubmitClass::kInvalid:
      co_return submit_stuck(tx.due, answer, result.message);
    default:
      break;
  }
  auto step = submit_waits(tx.due, answer, result.message);
  const bool refused = result.outcome == evm::SubmitClass::kFeeTooLow ||
                       result.outcome == evm::SubmitClass::kUnderpriced ||
                       result.outcome == evm::SubmitClass::kInsufficientFunds;
  const bool no_endpoint_has_it =
      !tx.sent_before && (result.reach == evm::Reach::kNowhere || (refused && result.reach == evm::Reach::kAnswered));
  step.attempt_outcome = no_endpoint_has_it ? AttemptOutcome::kRefused : AttemptOutcome::kUnknown;
  step.expect_claims = tx.claims;
  co_return step;
}

Step Broadcaster::accepted(const Outgoing& tx, std::string why) const {
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

// Due at once: the refused transaction before it delays it. No endpoint has seen the bytes of this claim.
Step Broadcaster::held_back(const Outgoing& tx) const {
  Step step(tx.due.lease, tx.due.tx_id, TxState::kAllocated, TxState::kAllocated,
            "not sent: a lower nonce of the signer was not accepted");
  step.quiet = true;
  step.expect_receipt_hash = "";
  step.due_in = std::chrono::milliseconds(0);
  step.attempt_outcome = tx.sent_before ? AttemptOutcome::kUnknown : AttemptOutcome::kRefused;
  step.expect_claims = tx.claims;
  return step;
}

}  // namespace fencepost::tx
