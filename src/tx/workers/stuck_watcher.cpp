#include "tx/workers/stuck_watcher.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/service/block_check.hpp"
#include "tx/service/mined_after_end.hpp"
#include "tx/service/nonce_use.hpp"
#include "tx/service/receipt_steps.hpp"
#include "tx/store/attempt_store.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kLimit = 500;  // heads that are examined in one round
constexpr int kLongestPause = 6;     // searches for one transaction are 1 s, 2 s, … 64 s apart

bool is_external(const OpenHead& head) {
  return head.sub_state == SubState::kExternal;
}

// Whether the chain should be asked about this nonce. Transactions that proceed as usual are not asked about.
bool is_suspicious(const OpenHead& head, const ChainOptions& options) {
  if (head.state == TxState::kStuck || is_external(head) || head.sub_state == SubState::kNonceTooLow) return true;
  return head.waits >= options.nonce.nonce_state_timeout;
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

boost::json::object taken_by(const Inclusion& taker) {
  return {{"txHash", taker.tx_hash}, {"blockNumber", taker.block_number}, {"blockHash", taker.block_hash}};
}

std::string named(const std::string& why, const Inclusion& taker) {
  return fmt::format("{}: {} in block {}", why, taker.tx_hash, taker.block_number);
}

Step stuck_step(const OpenHead& head, SubState sub_state, const std::string& why,
                const std::optional<Inclusion>& taker = std::nullopt) {
  Step step(head.lease, head.tx_id, head.state, TxState::kStuck, why);
  step.expect_receipt_hash = "";
  if (!is_external(head)) step.sub_state = sub_state;
  // Bytes that no endpoint has are not sent again at their old price.
  if (head.state == TxState::kAllocated && head.unsent) step.due_in = kNever;
  step.error = why;
  boost::json::object about{{"nonce", head.nonce}, {"reason", kSubStates.name(sub_state)}, {"detail", why}};
  if (taker) about["takenBy"] = taken_by(*taker);
  step.events.emplace_back(TxEvent::kStuck, event_json(head.lease.key, head.tx_id, std::move(about)));
  return step;
}

// Why a transaction without a receipt is STUCK. One that no endpoint has keeps the reason of its last refusal.
SubState overdue_reason(const OpenHead& head) {
  const bool refused = head.state == TxState::kAllocated && head.unsent && head.sub_state != SubState::kNone &&
                       head.sub_state != SubState::kGapFill;
  return refused ? head.sub_state : SubState::kNoReceipt;
}

// An ALLOCATED transaction that no endpoint has, and that is not stuck however old it is: nothing was tried yet (all
// nodes were down), or the price is above the ceiling, which has its own alert.
bool waits_by_right(const OpenHead& head) {
  if (head.state != TxState::kAllocated || !head.unsent) return false;
  const bool never_tried = !head.tx_hash && (head.sub_state == SubState::kNone || head.sub_state == SubState::kGapFill);
  return never_tried || head.sub_state == SubState::kFeeAboveCeiling;
}

std::string overdue_why(const OpenHead& head) {
  if (head.tx_hash) return "no receipt since the first broadcast, for longer than stuck.after";
  return "not broadcast since it got its nonce, for longer than stuck.after";
}

// An external row (a nonce of another sender) ends without an event, because its end was expected.
Step taken_for_good_step(const OpenHead& head, const Decision& decision) {
  const auto why = decision.inclusion ? named(decision.why, *decision.inclusion) : decision.why;
  Step step(head.lease, head.tx_id, head.state, TxState::kFailedFinal, why);
  step.expect_receipt_hash = "";
  if (is_external(head)) return step;
  step.sub_state = failure_reason(decision.verdict);
  step.error = why;
  boost::json::object about{{"nonce", head.nonce}, {"reason", kSubStates.name(*step.sub_state)}, {"detail", why}};
  if (decision.inclusion) about["takenBy"] = taken_by(*decision.inclusion);
  step.events.emplace_back(TxEvent::kFailed, event_json(head.lease.key, head.tx_id, std::move(about)));
  return step;
}

// STUCK stays STUCK; its error now says why the transaction that took the nonce was not found.
Step not_found_step(const OpenHead& head, const std::string& why) {
  Step step(head.lease, head.tx_id, head.state, head.state, why);
  step.expect_receipt_hash = "";
  step.error = why;
  return step;
}

// Whether the chain says that another sender used the nonce, and it is not known with which transaction.
bool wants_taker(const OpenHead& head, const ChainFacts& facts) {
  return !is_external(head) && facts.found.empty() && !facts.listed_block && facts.nonce &&
         facts.nonce->at_head > head.nonce && facts.nonce->own_mined == 0;
}

Step tracking_step(const OpenHead& head, const Decision& decision) {
  Step step(head.lease, head.tx_id, head.state, TxState::kTracking, decision.why);
  step.expect_receipt_hash = "";
  if (head.state == TxState::kStuck) {
    step.events.emplace_back(TxEvent::kResumed,
                             resumed_json(head.lease.key, head.tx_id, head.nonce, step.to, step.why));
  }
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
  return head.state != TxState::kStuck && head.waits >= limit && (!head.since_head || *head.since_head >= limit) &&
         !waits_by_right(head);
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
  std::erase_if(searched_,
                [&](const auto& one) { return std::ranges::find(heads, one.first, &OpenHead::tx_id) == heads.end(); });
  std::vector<Step> steps;
  std::vector<OpenHead> suspicious;
  for (const auto& head : heads) {
    if (!is_external(head) && is_overdue(head)) {
      steps.push_back(stuck_step(head, overdue_reason(head), overdue_why(head)));
    } else if (is_suspicious(head, chain_.options)) {
      suspicious.push_back(head);
    }
  }
  take_turns(suspicious);
  if (!steps.empty()) {
    co_await chain_.apply(std::move(steps));
    test_point("heads.committed");
  }
  co_await look_at_unsent(suspicious);
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
  const auto latest =
      co_await chain_.connector.block(evm::BlockTag::kLatest, chain_.connector.endpoint_with(own_number));
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
  auto attempts = co_await list_attempts(chain_.database.pool(), head.tx_id);
  auto evidence = co_await gather(head, attempts, nonce_at_head, endpoint);
  if (!evidence) co_return false;
  if (wants_taker(head, evidence->facts)) co_await name_taker(head, attempts, *evidence, endpoint);
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
    if (is_external(head)) {
      nonce.at_final = co_await count_at_final(head.lease.key.signer, final->number, endpoint);
    }
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
      if (!receipt->succeeded) evidence.revert_reason = (co_await why_reverted(chain_, {*receipt})).front();
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

// The count at our head now, for when that block is final: by then many endpoints have dropped its state.
awaitable<> StuckWatcher::note_count(const std::string& signer, std::size_t endpoint) {
  const auto* head = chain_.follower.window().head();
  if (head == nullptr) co_return;
  const auto number = head->number;
  const auto count = co_await chain_.connector.nonce_at(signer, number, endpoint);
  const auto blocks = co_await chain_.connector.blocks(number, 1, endpoint);
  if (!count || !blocks || blocks->empty()) co_return;
  const auto& hash = blocks->front().header.hash;
  if (chain_.follower.window().contains(number, hash) == true) history_.note(signer, {number, hash, *count});
}

awaitable<std::optional<std::int64_t>> StuckWatcher::count_at_final(const std::string& signer,
                                                                    std::int64_t final_number, std::size_t endpoint) {
  co_await note_count(signer, endpoint);
  while (const auto seen = history_.newest_until(signer, final_number)) {
    const auto ours = co_await chain_.evm_chain.branch().contains(seen->block_number, seen->block_hash);
    if (ours == true) co_return seen->count;
    if (!ours) break;
    history_.forget(signer, *seen);
  }
  // Nothing was noted early enough. An endpoint that still has the state of the final block can answer for it.
  const auto count = co_await chain_.connector.nonce_at(signer, final_number, endpoint);
  const auto blocks = co_await chain_.connector.blocks(final_number, 1, endpoint);
  if (!count || !blocks || blocks->empty()) co_return std::nullopt;
  const auto ours = co_await chain_.evm_chain.branch().contains(final_number, blocks->front().header.hash);
  co_return ours == true ? std::optional(*count) : std::nullopt;
}

// The first search asks `first`, each further one the next endpoint: only some keep the state of old blocks.
std::size_t StuckWatcher::endpoint_of_try(int tries, std::size_t first) const {
  const auto usable = usable_endpoints(chain_.connector);
  const auto begin = std::ranges::find(usable, first) - usable.begin();
  return usable[static_cast<std::size_t>(begin + tries) % usable.size()];
}

awaitable<> StuckWatcher::name_taker(const OpenHead& head, std::vector<AttemptView>& attempts, Evidence& evidence,
                                     std::size_t endpoint) {
  auto& searched = searched_[head.tx_id];
  const auto now = std::chrono::steady_clock::now();
  if (now < searched.next) co_return;
  searched.next = now + std::chrono::seconds(1 << std::min(searched.tries, kLongestPause));
  const auto asked = endpoint_of_try(searched.tries, endpoint);
  ++searched.tries;
  const auto search = co_await find_nonce_use(chain_, head.lease.key, head.nonce, asked);
  auto& last = searched_[head.tx_id];  // the map may have changed during the search
  last.why = search.why;
  if (!search.use) co_return;
  const auto& use = *search.use;
  const auto known = std::ranges::find(attempts, use.tx_hash, &AttemptView::tx_hash);
  if (known != attempts.end() && known->kind != AttemptKind::kExternal) {
    // Ours after all: only the receipt is missing.
    chain_.expect_receipt(use.tx_hash, {use.block_number, use.block_hash});
    evidence.facts.listed_block = use.block_number;
    co_return;
  }
  if (known == attempts.end()) {
    if (!co_await another_endpoint_confirms(chain_, head.lease.key, head.nonce, use, asked)) {
      searched_[head.tx_id].why =
          fmt::format("one endpoint says that {} in block {} has taken the nonce, and no other endpoint confirms it",
                      use.tx_hash, use.block_number);
      co_return;
    }
    // It may have been ours before it released this nonce. The news comes first: the attempt moves to this one.
    std::vector<ListedTx> listed{{use.tx_hash, use.block_number, use.block_hash}};
    if (const auto left = co_await report_mined_after_end(chain_, std::move(listed)); !left.empty()) co_return;
    const auto outcome =
        co_await record_taker(chain_.database.pool(), chain_.node(), head.lease, head.tx_id, head.state, use.tx_hash);
    if (outcome == StepOutcome::kFenced) chain_.leases.lost(head.lease);
    if (outcome != StepOutcome::kDone) {
      searched_[head.tx_id].why =
          fmt::format("{} in block {} has taken the nonce, and belongs to another transaction of Fencepost",
                      use.tx_hash, use.block_number);
      co_return;
    }
    log::warn("another transaction has taken a nonce", {{"txId", head.tx_id.to_string()},
                                                        {"signer", head.lease.key.signer},
                                                        {"nodeId", chain_.node()},
                                                        {"fencingToken", head.lease.fencing_token},
                                                        {"nonce", head.nonce},
                                                        {"takenBy", use.tx_hash},
                                                        {"block", use.block_number}});
    attempts.push_back({.tx_hash = use.tx_hash, .kind = AttemptKind::kExternal, .created_at = {}});
  }
  evidence.facts.found.push_back({use.tx_hash, use.block_number, use.block_hash, true});
}

std::string StuckWatcher::why_not_found(const OpenHead& head) const {
  const auto searched = searched_.find(head.tx_id);
  return searched == searched_.end() ? std::string() : searched->second.why;
}

// An endpoint that does not return the receipt may still report that the transaction is in a block.
awaitable<bool> StuckWatcher::says_mined(const std::string& tx_hash, std::size_t endpoint) {
  const auto transaction = co_await chain_.connector.transaction(tx_hash, endpoint);
  co_return transaction && *transaction && (*transaction)->block_hash;
}

std::optional<Step> StuckWatcher::step_for(const Decision& decision, const OpenHead& head,
                                           const std::vector<AttemptView>& attempts, const Evidence& evidence) {
  switch (decision.verdict) {
    case Verdict::kMined: {
      const auto attempt = std::ranges::find(attempts, evidence.receipt->tx_hash, &AttemptView::tx_hash);
      return mined_step(chain_, to_match(head, *attempt), *evidence.receipt, evidence.revert_reason);
    }
    case Verdict::kStuckForeign: {
      if (decision.inclusion) {
        return stuck_step(head, SubState::kNonceTaken, named(decision.why, *decision.inclusion), decision.inclusion);
      }
      const auto why = searched_[head.tx_id].told = why_not_found(head);
      return stuck_step(head, SubState::kNonceTaken, why.empty() ? decision.why : decision.why + "; " + why);
    }
    case Verdict::kConsumedElsewhere:
      return taken_for_good_step(head, decision);
    case Verdict::kTracking:
      return tracking_step(head, decision);
    case Verdict::kWait: {
      const auto why = why_not_found(head);
      if (head.sub_state != SubState::kNonceTaken || why.empty() || searched_[head.tx_id].told == why) {
        return std::nullopt;
      }
      searched_[head.tx_id].told = why;
      return not_found_step(head, "a transaction that is not ours has taken the nonce; " + why);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace fencepost::tx
