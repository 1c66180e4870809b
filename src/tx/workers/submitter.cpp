#include "tx/workers/submitter.hpp"

#include <algorithm>
#include <map>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/model/payload.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kBatch = 1'000;

// To be signed, or signed anew: its fee was refused, and nobody can have it.
bool needs_signing(const DueSubmit& due) {
  if (!due.raw) return true;
  return due.outcome == "refused" && (due.sub_state == to_string(evm::SubmitClass::kFeeTooLow) ||
                                      due.sub_state == to_string(evm::SubmitClass::kUnderpriced));
}

}  // namespace

Submitter::Submitter(ChainContext& chain)
    : chain_(chain),
      fees_(make_fee_policy(chain.connector, chain.follower, chain.options.fees)),
      worker_(
          chain.home,
          {.name = "tx_submitter",
           .chain = chain.evm_chain.name(),
           .interval = std::chrono::seconds(1),
           .stop_grace = ChainContext::kStopGrace},
          [this] { return submit_due(); }, chain.metrics) {
  count(to_string(evm::SubmitClass::kAccepted), 0);
}

void Submitter::count(std::string_view result, std::size_t n) {
  chain_.metrics
      .counter("tx_submit_total", "First broadcasts",
               {{"chain", chain_.evm_chain.name()}, {"result", std::string(result)}})
      .Increment(static_cast<double>(n));
}

awaitable<Worker::Next> Submitter::submit_due() {
  auto due = co_await due_submits(chain_.database.pool(), chain_.node(), chain_.chain_id(), kBatch);
  if (due.empty()) co_return Worker::Next::kRest;
  const bool full = due.size() == kBatch;
  std::vector<DueSubmit> fresh, again;
  for (auto& tx : due) (needs_signing(tx) ? fresh : again).push_back(std::move(tx));

  auto out = co_await sign_and_claim(std::move(fresh));
  auto resent = co_await claim_again(std::move(again));
  std::ranges::move(resent, std::back_inserter(out));
  std::ranges::sort(out, [](const Outgoing& a, const Outgoing& b) {
    return std::tie(a.due.lease.key.signer, a.due.nonce) < std::tie(b.due.lease.key.signer, b.due.nonce);
  });
  const bool any = !out.empty();
  if (any) co_await send(std::move(out));
  co_return full&& any ? Worker::Next::kAgain : Worker::Next::kRest;
}

awaitable<std::vector<Submitter::Outgoing>> Submitter::sign_and_claim(std::vector<DueSubmit> due) {
  std::vector<Outgoing> out;
  if (due.empty()) co_return out;
  std::vector<Step> steps;  // for those that cannot be signed now
  std::vector<Payload> payloads;
  for (const auto& tx : due) payloads.push_back(stored_payload(tx.payload));
  const auto offers = co_await fees_->offers(payloads);
  std::map<std::string, std::vector<std::pair<std::size_t, evm::Transaction>>> by_signer;
  std::vector<evm::Fees> fees_of(due.size());
  for (std::size_t i = 0; i < due.size(); ++i) {
    const auto& fees = offers[i];
    if (!fees) {
      const bool later = fees.error().kind == ErrorKind::kUnavailable;
      steps.push_back(later ? waits(due[i], "fees_unknown", fees.error().message)
                            : stuck(due[i], fees.error().code, fees.error().message));
      continue;
    }
    fees_of[i] = *fees;
    by_signer[due[i].lease.key.signer].emplace_back(
        i, build_transaction(payloads[i], chain_.chain_id(), due[i].nonce, static_cast<std::uint64_t>(due[i].gas_limit),
                             *fees));
  }

  std::vector<Claim> claims;
  std::vector<DueSubmit> unchanged;
  for (auto& [address, transactions] : by_signer) {
    auto* signer = chain_.keys.find(address);
    std::vector<evm::Transaction> plain;
    for (auto& [i, transaction] : transactions) plain.push_back(std::move(transaction));
    std::vector<Result<evm::SignedTransaction>> signed_ones;
    if (signer != nullptr) {
      signed_ones = co_await signer->sign_all(std::move(plain));
    } else {
      signed_ones.assign(plain.size(), fail(unavailable("signer_unavailable", "this node has no key for the signer")));
    }
    for (std::size_t k = 0; k < transactions.size(); ++k) {
      const auto i = transactions[k].first;
      const auto& one = signed_ones[k];
      if (!one) {
        const bool later = one.error().kind == ErrorKind::kUnavailable;
        steps.push_back(later ? waits(due[i], one.error().code, one.error().message)
                              : stuck(due[i], one.error().code, one.error().message));
        continue;
      }
      auto hash = to_hex0x(one->hash);
      if (hash == due[i].tx_hash) {
        unchanged.push_back(due[i]);  // the same fees give the same bytes
        continue;
      }
      out.push_back({.due = due[i], .raw = to_hex0x(one->raw), .tx_hash = hash, .sent_before = false});
      claims.push_back({.lease = due[i].lease,
                        .tx_id = due[i].tx_id,
                        .from = TxState::kAllocated,
                        .previous_hash = due[i].tx_hash,
                        .tx_hash = std::move(hash),
                        .kind = "original",
                        .raw = one->raw,
                        .fees = fees_json(fees_of[i])});
    }
  }
  const auto claimed = co_await chain_.claim(std::move(claims));
  test_point("submitter.claimed");
  co_await chain_.apply(std::move(steps));
  auto kept = co_await claim_again(std::move(unchanged));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (claimed[i].outcome != StepOutcome::kDone) continue;
    out[i].claims = claimed[i].claims;
    kept.push_back(std::move(out[i]));
  }
  co_return kept;
}

// The bytes are stored; only the next try is claimed.
awaitable<std::vector<Submitter::Outgoing>> Submitter::claim_again(std::vector<DueSubmit> due) {
  std::vector<Outgoing> out;
  std::vector<Step> steps;
  for (auto& tx : due) {
    Step step(tx.lease, tx.tx_id, TxState::kAllocated, TxState::kAllocated, "sent again");
    step.quiet = true;
    step.expect_receipt_hash = "";
    step.due_in = chain_.claim_patience();
    // The old answer no longer counts, and the new one only if nobody claims after us (docs/correctness.md).
    step.attempt_outcome = "unknown";
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
                   .sent_before = due[i].outcome != "refused",
                   .claims = due[i].claims + 1});
  }
  co_return out;
}

awaitable<> Submitter::send(std::vector<Outgoing> out) {
  std::vector<std::string> raw;
  for (auto& tx : out) raw.push_back(std::move(tx.raw));
  const auto results = co_await chain_.connector.send(std::move(raw));
  test_point("submitter.sent");
  std::vector<Step> steps;
  for (std::size_t i = 0; i < out.size(); ++i) {
    count(to_string(results[i].outcome), 1);
    steps.push_back(co_await judge(out[i], results[i]));
  }
  co_await chain_.apply(std::move(steps));
  test_point("submitter.committed");
}

awaitable<Step> Submitter::judge(const Outgoing& tx, const evm::SendResult& result) {
  const auto name = std::string(to_string(result.outcome));
  switch (result.outcome) {
    case evm::SubmitClass::kAccepted:
      co_return accepted(tx, "accepted by the chain");
    case evm::SubmitClass::kKnownTransaction:
      co_return accepted(tx, "the chain has it already");
    case evm::SubmitClass::kNonceTooLow: {
      const auto known = co_await chain_.connector.transaction(tx.tx_hash);
      if (known && *known) co_return accepted(tx, "the chain has it already");
      chain_.wake_stuck_watcher();  // somebody else's? The rules of finality decide
      auto step = waits(tx.due, name, result.message);
      step.attempt_outcome = "unknown";
      co_return step;
    }
    case evm::SubmitClass::kIntrinsicGas:
    case evm::SubmitClass::kReverted:
    case evm::SubmitClass::kInvalid:
      co_return stuck(tx.due, name, result.message);
    default:
      break;
  }
  auto step = waits(tx.due, name, result.message);
  const bool refused = result.outcome == evm::SubmitClass::kFeeTooLow ||
                       result.outcome == evm::SubmitClass::kUnderpriced ||
                       result.outcome == evm::SubmitClass::kInsufficientFunds;
  const bool nobody_has_it =
      !tx.sent_before && (result.reach == evm::Reach::kNowhere || (refused && result.reach == evm::Reach::kAnswered));
  step.attempt_outcome = nobody_has_it ? "refused" : "unknown";
  step.expect_claims = tx.claims;
  co_return step;
}

Step Submitter::accepted(const Outgoing& tx, std::string why) const {
  Step step(tx.due.lease, tx.due.tx_id, TxState::kAllocated, TxState::kTracking, std::move(why));
  step.expect_receipt_hash = "";
  step.sub_state = "";
  step.error = "";
  step.reset_tries = true;
  step.due_in = chain_.until_resubmit();
  step.attempt_outcome = "accepted";
  step.events.emplace_back(
      "TxSubmitted", event_json(tx.due.lease.key, tx.due.tx_id, {{"txHash", tx.tx_hash}, {"nonce", tx.due.nonce}}));
  return step;
}

// Tried again later, by itself; only the first failure of a row of them is history.
Step Submitter::waits(const DueSubmit& due, std::string sub_state, std::string message) const {
  Step step(due.lease, due.tx_id, TxState::kAllocated, TxState::kAllocated, "waits: " + message);
  step.quiet = due.retry_count > 0 || sub_state.empty();
  step.expect_receipt_hash = "";
  step.sub_state = std::move(sub_state);
  step.error = std::move(message);
  step.failed_try = true;
  step.due_in = ChainContext::retry_delay(due.retry_count);
  return step;
}

Step Submitter::stuck(const DueSubmit& due, std::string sub_state, std::string message) const {
  Step step(due.lease, due.tx_id, TxState::kAllocated, TxState::kStuck, "no retry can cure this: " + message);
  step.expect_receipt_hash = "";
  step.events.emplace_back("TxStuck", event_json(due.lease.key, due.tx_id,
                                                 {{"nonce", due.nonce}, {"reason", sub_state}, {"detail", message}}));
  step.due_in = kNever;
  step.sub_state = std::move(sub_state);
  step.error = std::move(message);
  return step;
}

}  // namespace fencepost::tx
