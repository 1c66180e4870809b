#include "tx/workers/resubmitter.hpp"

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kResubmitsAtOnce = 500;

}  // namespace

Resubmitter::Resubmitter(ChainContext& chain)
    : chain_(chain),
      worker_(
          chain.home,
          {.name = "tx_resubmitter",
           .chain = chain.evm_chain.name(),
           .interval = std::chrono::seconds(1),
           .stop_grace = ChainContext::kStopGrace},
          [this] { return resubmit_due(); }, chain.metrics) {
  count(to_string(evm::SubmitClass::kAccepted), 0);
}

void Resubmitter::count(std::string_view result, std::size_t n) {
  chain_.metrics
      .counter("tx_resubmit_total", "Broadcasts of bytes that were broadcast before",
               {{"chain", chain_.evm_chain.name()}, {"result", std::string(result)}})
      .Increment(static_cast<double>(n));
}

awaitable<Worker::Next> Resubmitter::resubmit_due() {
  // Even with resubmission disabled, a claimed broadcast without an outcome is repeated after claim_patience().
  const auto patience = chain_.options.resubmit.enabled ? chain_.options.resubmit.interval : chain_.claim_patience();
  const auto due =
      co_await claim_resubmits(chain_.database.pool(), chain_.node(), chain_.chain_id(), patience, kResubmitsAtOnce);
  if (due.empty()) co_return Worker::Next::kRest;
  test_point("resubmitter.claimed");
  std::vector<std::string> raw;
  for (const auto& tx : due) {
    log::info("transaction broadcast again", {{"txId", tx.tx_id.to_string()},
                                              {"signer", tx.lease.key.signer},
                                              {"nodeId", chain_.node()},
                                              {"fencingToken", tx.lease.fencing_token},
                                              {"txHash", tx.tx_hash}});
    raw.push_back(tx.raw);
  }
  const auto results = co_await chain_.connector.send(std::move(raw));
  test_point("resubmitter.sent");

  std::vector<Step> steps;
  for (std::size_t i = 0; i < due.size(); ++i) {
    count(to_string(results[i].outcome), 1);
    if (auto step = judge(due[i], results[i])) steps.push_back(std::move(*step));
  }
  co_await chain_.apply(std::move(steps));
  co_return due.size() == kResubmitsAtOnce ? Worker::Next::kAgain : Worker::Next::kRest;
}

// nullopt skips the write: the row already says that the broadcast was accepted, or other workers decide.
std::optional<Step> Resubmitter::judge(const Resubmit& sent, const evm::SendResult& result) {
  Step step(sent.lease, sent.tx_id, sent.state, sent.state, "rebroadcast");
  step.quiet = true;
  step.expect_receipt_hash = "";
  step.expect_due_at = sent.due_at;  // the answer is about the attempt that was current then
  const bool that_was_it = !chain_.options.resubmit.enabled && result.outcome != evm::SubmitClass::kTransient;
  if (that_was_it) step.due_in = kNever;
  switch (result.outcome) {
    case evm::SubmitClass::kAccepted:
    case evm::SubmitClass::kKnownTransaction:
      step.attempt_outcome = AttemptOutcome::kAccepted;
      if (sent.retry_count > 0) {
        step.reset_tries = true;
        step.error = "";
      } else if (!that_was_it) {
        return std::nullopt;
      }
      return step;
    case evm::SubmitClass::kNonceTooLow:
      // Probably mined, or another sender took the nonce. The receipt checker and the stuck watcher find out which.
      chain_.wake_receipts();
      chain_.wake_stuck_watcher();
      return that_was_it ? std::optional(step) : std::nullopt;
    default:
      step.failed_try = true;
      step.error = result.message;
      step.attempt_outcome = AttemptOutcome::kUnknown;  // an endpoint may still have it from before
      return step;
  }
}

}  // namespace fencepost::tx
