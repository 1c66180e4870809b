#include "tx/workers/stuck_watcher.hpp"

#include <algorithm>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/service/receipt_steps.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kLimit = 500;  // heads that are examined in one round

bool is_external(const OpenHead& head) {
  return head.sub_state == SubState::kExternal;
}

// Whether the chain should be asked about this nonce. Transactions that proceed as usual are not asked about.
bool is_suspicious(const OpenHead& head, const ChainOptions& options) {
  if (head.state == TxState::kStuck || is_external(head) || head.sub_state == SubState::kNonceTooLow) return true;
  return head.since_submit && *head.since_submit >= options.nonce.nonce_state_timeout;
}

OpenTx to_open_tx(const OpenHead& head, const std::vector<AttemptView>& attempts) {
  OpenTx tx{.state = head.state, .nonce = head.nonce};
  for (const auto& attempt : attempts) {
    tx.attempts.push_back({attempt.tx_hash, attempt.kind});
  }
  tx.taken_by_foreign = head.sub_state == SubState::kNonceTaken;
  tx.external = is_external(head);
  return tx;
}

Step stuck_step(const OpenHead& head, SubState sub_state, const std::string& why) {
  Step step(head.lease, head.tx_id, head.state, TxState::kStuck, why);
  step.expect_receipt_hash = "";
  if (!is_external(head)) step.sub_state = sub_state;
  step.error = why;
  step.events.emplace_back(
      TxEvent::kStuck, event_json(head.lease.key, head.tx_id,
                                  {{"nonce", head.nonce}, {"reason", kSubStates.name(sub_state)}, {"detail", why}}));
  return step;
}

// An external row (a nonce of another sender) ends without an event, because its end was expected.
Step taken_for_good_step(const OpenHead& head, const Decision& decision) {
  Step step(head.lease, head.tx_id, head.state, TxState::kFailedFinal, decision.why);
  step.expect_receipt_hash = "";
  if (is_external(head)) return step;
  step.sub_state = failure_reason(decision.verdict);
  step.error = decision.why;
  step.events.emplace_back(
      TxEvent::kFailed,
      event_json(head.lease.key, head.tx_id, {{"nonce", head.nonce}, {"reason", kSubStates.name(*step.sub_state)}}));
  return step;
}

Step tracking_step(const OpenHead& head, const Decision& decision) {
  Step step(head.lease, head.tx_id, head.state, TxState::kTracking, decision.why);
  step.expect_receipt_hash = "";
  if (is_external(head)) return step;
  step.sub_state = SubState::kNone;
  step.error = "";
  step.due_in = std::chrono::milliseconds(0);
  return step;
}

Match to_match(const OpenHead& head, const AttemptView& attempt) {
  return {.lease = head.lease,
          .tx_id = head.tx_id,
          .state = head.state,
          .nonce = head.nonce,
          .sub_state = head.sub_state,
          .attempt_hash = attempt.tx_hash,
          .attempt_kind = attempt.kind,
          .withdrawn = head.withdrawn};
}

}  // namespace

StuckWatcher::StuckWatcher(ChainContext& chain)
    : chain_(chain),
      worker_(
          chain.home,
          {.name = "tx_stuck_watcher",
           .chain = chain.evm_chain.name(),
           .interval = std::chrono::seconds(2),
           .stop_grace = ChainContext::kStopGrace},
          [this] { return watch(); }, chain.metrics) {}

// The time counts from when the nonce became the lowest: before that, the transaction could not be mined.
bool StuckWatcher::is_overdue(const OpenHead& head) const {
  const auto limit = chain_.options.stuck_after;
  return head.state != TxState::kStuck && head.since_submit && *head.since_submit >= limit &&
         (!head.since_head || *head.since_head >= limit);
}

// Keeps at most kLimit heads, starting where the last round ended.
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
    if (!is_external(head) && is_overdue(head)) {
      steps.push_back(
          stuck_step(head, SubState::kNoReceipt, "no receipt since the first broadcast, for longer than stuck.after"));
    } else if (is_suspicious(head, chain_.options)) {
      suspicious.push_back(head);
    }
  }
  take_turns(suspicious);
  if (!steps.empty()) {
    co_await chain_.apply(std::move(steps));
    test_point("heads.committed");
  }
  const bool ended = co_await look_at_nonces(std::move(suspicious));
  // Run again at once: a shared signer may have many consecutive nonces that other senders took.
  co_return ended ? Worker::Next::kAgain : Worker::Next::kRest;
}

// Asks one endpoint for the counts and everything after them, and only one that does not lag behind this node: see
// NonceFacts in finality.hpp.
awaitable<bool> StuckWatcher::look_at_nonces(std::vector<OpenHead> suspicious) {
  const auto* own = chain_.follower.window().head();
  if (suspicious.empty() || own == nullptr) co_return false;
  const auto own_number = own->number;
  const auto latest = co_await chain_.connector.block(evm::BlockTag::kLatest);
  if (!latest || latest->header.number < own_number) co_return false;
  std::vector<std::string> signers;
  signers.reserve(suspicious.size());
  for (const auto& head : suspicious) signers.push_back(head.lease.key.signer);
  const auto nonces = co_await chain_.connector.nonces(std::move(signers), evm::NonceTag::kLatest, latest->endpoint);

  bool any_ended = false;
  std::vector<Step> gaps;
  for (std::size_t i = 0; i < suspicious.size(); ++i) {
    if (!nonces[i]) continue;
    const auto& head = suspicious[i];
    if (*nonces[i] > head.nonce || head.sub_state == SubState::kNonceTaken) {
      const bool ended = co_await examine(head, *nonces[i], latest->endpoint);
      any_ended = any_ended || ended;
    } else if (is_external(head) && is_overdue(head)) {
      gaps.push_back(
          stuck_step(head, SubState::kGap, "another sender has not used its nonce for longer than stuck.after"));
    }
  }
  co_await chain_.apply(std::move(gaps));
  co_return any_ended;
}

awaitable<bool> StuckWatcher::examine(OpenHead head, std::int64_t nonce_at_head, std::size_t endpoint) {
  const auto attempts = co_await list_attempts(chain_.database.pool(), head.tx_id);
  const auto evidence = co_await gather(head, attempts, nonce_at_head, endpoint);
  if (!evidence) co_return false;
  const auto decision = decide(to_open_tx(head, attempts), evidence->facts);
  auto step = step_for(decision, head, attempts, *evidence);
  if (!step) co_return false;

  std::vector<Step> steps;
  steps.push_back(std::move(*step));
  const auto outcomes = co_await chain_.apply(std::move(steps));
  test_point("heads.committed");
  chain_.wake_promoter(std::vector{head.lease.key.signer});
  chain_.wake_resubmitter();
  co_return decision.verdict == Verdict::kConsumedElsewhere&& outcomes.front() == StepOutcome::kDone;
}

awaitable<std::optional<StuckWatcher::Evidence>> StuckWatcher::gather(const OpenHead& head,
                                                                      const std::vector<AttemptView>& attempts,
                                                                      std::int64_t nonce_at_head,
                                                                      std::size_t endpoint) {
  Evidence evidence;
  auto& facts = evidence.facts;
  NonceFacts nonce{.at_head = nonce_at_head};
  if (const auto final = co_await chain_.evm_chain.final_block()) {
    facts.final_number = final->number;
    nonce.at_final = co_await nonce_at_final(head.lease.key.signer, final->number, endpoint);
  }
  std::vector<std::string> hashes;
  hashes.reserve(attempts.size());
  for (const auto& attempt : attempts) hashes.push_back(attempt.tx_hash);
  const auto receipts = co_await chain_.connector.receipts(hashes, endpoint);
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    if (!receipts[i]) co_return std::nullopt;
    const auto& receipt = *receipts[i];
    const bool ours = attempts[i].kind != AttemptKind::kExternal;
    if (receipt && co_await on_own_branch(chain_, *receipt) == true) {
      facts.found.push_back({receipt->tx_hash, receipt->block_number, receipt->block_hash, receipt->succeeded});
      evidence.receipt = *receipt;
    }
    if (!ours) continue;
    const bool mined = receipt || co_await says_mined(attempts[i].tx_hash, endpoint);
    if (mined) ++nonce.own_mined;
    if (const auto listing = chain_.find_listing(attempts[i].tx_hash)) facts.listed_block = listing->block_number;
  }
  facts.nonce = nonce;
  const auto* own = chain_.follower.window().head();
  if (own == nullptr) co_return std::nullopt;
  facts.head_number = own->number;
  co_return evidence;
}

// nullopt unless the endpoint has the same block as the own branch at that height.
awaitable<std::optional<std::int64_t>> StuckWatcher::nonce_at_final(const std::string& signer,
                                                                    std::int64_t final_number, std::size_t endpoint) {
  const auto count = co_await chain_.connector.nonce_at(signer, final_number, endpoint);
  const auto blocks = co_await chain_.connector.blocks(final_number, 1, endpoint);
  if (!count || !blocks || blocks->empty()) co_return std::nullopt;
  if (chain_.follower.window().contains(final_number, blocks->front().header.hash) != true) co_return std::nullopt;
  co_return *count;
}

// An endpoint that does not return the receipt may still report that the transaction is in a block.
awaitable<bool> StuckWatcher::says_mined(const std::string& tx_hash, std::size_t endpoint) {
  const auto transaction = co_await chain_.connector.transaction(tx_hash, endpoint);
  co_return transaction && *transaction && (*transaction)->block_hash;
}

std::optional<Step> StuckWatcher::step_for(const Decision& decision, const OpenHead& head,
                                           const std::vector<AttemptView>& attempts, const Evidence& evidence) const {
  switch (decision.verdict) {
    case Verdict::kMined: {
      const auto attempt = std::ranges::find(attempts, evidence.receipt->tx_hash, &AttemptView::tx_hash);
      return mined_step(chain_, to_match(head, *attempt), *evidence.receipt);
    }
    case Verdict::kStuckForeign:
      return stuck_step(head, SubState::kNonceTaken, decision.why);
    case Verdict::kConsumedElsewhere:
      return taken_for_good_step(head, decision);
    case Verdict::kTracking:
      return tracking_step(head, decision);
    default:
      return std::nullopt;
  }
}

}  // namespace fencepost::tx
