#include "tx/workers/stuck_watcher.hpp"

#include <algorithm>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/service/final_block.hpp"
#include "tx/service/receipt_steps.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {
namespace {

constexpr std::string_view kTaken = "nonce_taken";
constexpr std::string_view kExternal = "external";
constexpr std::size_t kLimit = 500;  // heads that are examined in one round

// Whether the chain should be asked about it: not in the ordinary course of things.
bool is_suspicious(const OpenHead& head, const ChainOptions& options) {
  if (head.state == TxState::kStuck || head.sub_state == kExternal || head.sub_state == "nonce_too_low") return true;
  return head.since_submit && *head.since_submit >= options.nonce.nonce_state_timeout;
}

OpenTx to_open_tx(const OpenHead& head, const std::vector<AttemptView>& attempts) {
  OpenTx tx{.state = head.state, .nonce = head.nonce};
  for (const auto& attempt : attempts) {
    tx.attempts.push_back({attempt.tx_hash, find_attempt_kind(attempt.kind).value()});
  }
  tx.taken_by_foreign = head.sub_state == kTaken;
  tx.external = head.sub_state == kExternal;
  return tx;
}

}  // namespace

StuckWatcher::StuckWatcher(ChainContext& chain)
    : chain_(chain),
      worker_(
          chain.home,
          {.name = "tx_stuck_watcher", .interval = std::chrono::seconds(2), .stop_grace = ChainContext::kStopGrace},
          [this] { return watch(); }, chain.metrics) {}

Step StuckWatcher::stuck(const OpenHead& head, std::string sub_state, std::string why) const {
  Step step(head.lease, head.tx_id, head.state, TxState::kStuck, why);
  step.expect_receipt_hash = "";
  if (head.sub_state != kExternal) step.sub_state = sub_state;
  step.error = why;
  step.events.emplace_back("TxStuck", event_json(head.lease.key, head.tx_id,
                                                 {{"nonce", head.nonce}, {"reason", sub_state}, {"detail", why}}));
  return step;
}

// What waited behind another nonce could not be mined before it: its time begins when it became the lowest.
bool StuckWatcher::is_overdue(const OpenHead& head) const {
  const auto limit = chain_.options.stuck_after;
  return head.state != TxState::kStuck && head.since_submit && *head.since_submit >= limit &&
         (!head.since_head || *head.since_head >= limit);
}

// At most kLimit, beginning where the last round ended.
void StuckWatcher::take_turns(std::vector<OpenHead>& suspicious) {
  if (suspicious.size() <= kLimit) return;
  std::ranges::rotate(suspicious, suspicious.begin() + static_cast<std::ptrdiff_t>(turn_ % suspicious.size()));
  suspicious.resize(kLimit);
  turn_ += kLimit;
}

awaitable<Worker::Next> StuckWatcher::watch() {
  const auto heads = co_await open_heads(chain_.database.pool(), chain_.node(), chain_.chain_id());
  std::vector<Step> steps;
  std::vector<OpenHead> suspicious;
  for (const auto& head : heads) {
    if (head.sub_state != kExternal && is_overdue(head)) {
      steps.push_back(stuck(head, "no_receipt", "no receipt since the first broadcast, for longer than stuck.after"));
    } else if (is_suspicious(head, chain_.options)) {
      suspicious.push_back(head);
    }
  }
  take_turns(suspicious);
  if (!steps.empty()) {
    co_await chain_.apply(std::move(steps));
    test_point("heads.committed");
  }
  const auto* own = chain_.follower.window().head();
  if (suspicious.empty() || own == nullptr) co_return Worker::Next::kRest;

  // One endpoint for all that follows, and one that is not behind us: see finality.hpp on NonceFacts.
  const auto own_number = own->number;
  const auto latest = co_await chain_.connector.block(evm::BlockTag::kLatest);
  if (!latest || latest->header.number < own_number) co_return Worker::Next::kRest;
  std::vector<std::string> signers;
  for (const auto& head : suspicious) signers.push_back(head.lease.key.signer);
  const auto nonces = co_await chain_.connector.nonces(std::move(signers), evm::NonceTag::kLatest, latest->endpoint);
  bool ended = false;
  std::vector<Step> gaps;
  for (std::size_t i = 0; i < suspicious.size(); ++i) {
    if (!nonces[i]) continue;
    const auto& head = suspicious[i];
    const bool taken = *nonces[i] > head.nonce;
    if (taken || head.sub_state == kTaken) {
      const bool gone = co_await examine(head, *nonces[i], latest->endpoint);
      ended = ended || gone;
    } else if (head.sub_state == kExternal && is_overdue(head)) {
      gaps.push_back(stuck(head, "gap", "kept for somebody else, who has not used it for longer than stuck.after"));
    }
  }
  co_await chain_.apply(std::move(gaps));
  // A shared signer may have a long row of nonces that others took.
  co_return ended ? Worker::Next::kAgain : Worker::Next::kRest;
}

awaitable<bool> StuckWatcher::examine(OpenHead head, std::int64_t nonce_at_head, std::size_t endpoint) {
  const auto attempts = co_await list_attempts(chain_.database.pool(), head.tx_id);
  const auto tx = to_open_tx(head, attempts);
  const auto final = co_await final_block(chain_);
  NonceFacts nonce{.at_head = nonce_at_head};
  if (final) {
    const auto at_final = co_await chain_.connector.nonce_at(head.lease.key.signer, final->number, endpoint);
    const auto there = co_await chain_.connector.blocks(final->number, 1, endpoint);
    const bool same_block = there && !there->empty() &&
                            chain_.follower.window().contains(final->number, there->front().header.hash) == true;
    if (at_final && same_block) nonce.at_final = *at_final;
  }
  ChainFacts facts{.final_number = final ? std::optional(final->number) : std::nullopt};
  std::vector<std::string> hashes;
  for (const auto& attempt : attempts) hashes.push_back(attempt.tx_hash);
  std::optional<evm::Receipt> ours;
  for (auto& receipt : co_await chain_.connector.receipts(hashes, endpoint)) {
    if (!receipt) co_return false;  // not all was answered: nothing is decided
    if (!*receipt) continue;
    const auto& r = **receipt;
    const auto attempt = std::ranges::find(attempts, r.tx_hash, &AttemptView::tx_hash);
    if (attempt != attempts.end() && attempt->kind != kExternal) ++nonce.own_receipts;
    if (co_await on_own_branch(chain_, r) == true) {
      facts.found.push_back({r.tx_hash, r.block_number, r.block_hash, r.succeeded});
      ours = r;
    }
  }
  facts.nonce = nonce;
  const auto* own = chain_.follower.window().head();
  if (own == nullptr) co_return false;
  facts.head_number = own->number;

  const auto decision = decide(tx, facts);
  std::vector<Step> steps;
  switch (decision.verdict) {
    case Verdict::kMined: {
      const auto attempt = std::ranges::find(attempts, ours->tx_hash, &AttemptView::tx_hash);
      steps.push_back(mined_step(chain_,
                                 {.lease = head.lease,
                                  .tx_id = head.tx_id,
                                  .state = head.state,
                                  .nonce = head.nonce,
                                  .sub_state = head.sub_state,
                                  .attempt_hash = ours->tx_hash,
                                  .attempt_kind = attempt->kind,
                                  .withdrawn = head.withdrawn},
                                 *ours));
      break;
    }
    case Verdict::kStuckForeign:
      steps.push_back(stuck(head, std::string(kTaken), decision.why));
      break;
    case Verdict::kConsumedElsewhere: {
      Step step(head.lease, head.tx_id, head.state, TxState::kFailedFinal, decision.why);
      step.expect_receipt_hash = "";
      step.final = true;
      if (!tx.external) {
        step.sub_state = std::string(failure_reason(decision.verdict));
        step.error = decision.why;
        step.events.emplace_back(
            "TxFailed", event_json(head.lease.key, head.tx_id, {{"nonce", head.nonce}, {"reason", *step.sub_state}}));
      }
      steps.push_back(std::move(step));
      break;
    }
    case Verdict::kTracking: {
      Step step(head.lease, head.tx_id, head.state, TxState::kTracking, decision.why);
      step.expect_receipt_hash = "";
      if (!tx.external) {
        step.sub_state = "";
        step.error = "";
        step.due_in = std::chrono::milliseconds(0);
      }
      steps.push_back(std::move(step));
      break;
    }
    default:
      co_return false;
  }
  const auto outcomes = co_await chain_.apply(std::move(steps));
  test_point("heads.committed");
  chain_.wake_promoter();
  chain_.wake_resubmitter();
  co_return decision.verdict == Verdict::kConsumedElsewhere&& outcomes.front() == StepOutcome::kDone;
}

}  // namespace fencepost::tx
