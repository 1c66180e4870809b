#include "tx/workers/confirmation_manager.hpp"

#include <boost/json/serialize.hpp>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/model/confirmations.hpp"
#include "tx/model/finality.hpp"
#include "tx/service/mined_after_end.hpp"
#include "tx/service/receipt_steps.hpp"
#include "tx/store/reorg_store.hpp"
#include "tx/workers/orphaned_ends.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kMinedAtOnce = 1'000;
constexpr std::chrono::seconds kLookAtAllInterval{30};
constexpr std::chrono::seconds kUndecidedInterval{2};
constexpr std::size_t kListLimit = 512;  // blocks in a stored list, for rules that take hundreds

OpenTx to_open_tx(const MinedTx& tx) {
  return {.state = tx.state,
          .nonce = tx.nonce,
          .attempts = {{tx.tx_hash, tx.attempt_kind}},
          .mined = Inclusion{tx.tx_hash, tx.block, tx.block_hash, tx.succeeded}};
}

}  // namespace

ConfirmationManager::ConfirmationManager(ChainContext& chain)
    : chain_(chain),
      new_fork_total_(chain.metrics.counter("confirmations_new_fork_total",
                                            "Announced lists of confirmations that a reorg replaced",
                                            {{"chain", chain.evm_chain.name()}})),
      violated_total_(finality_violated_total(chain.metrics, chain.evm_chain.name())),
      worker_(
          chain.home,
          {.name = "tx_confirmations",
           .chain = chain.evm_chain.name(),
           .interval = std::chrono::seconds(2),
           .stop_grace = ChainContext::kStopGrace},
          [this] { return advance(); }, chain.metrics) {}

awaitable<> ConfirmationManager::on_reorg(std::int64_t ancestor) {
  co_await withdraw_dead(true);
  const auto* head = chain_.follower.window().head();
  // Blocks above the ancestor are new, and not looked at for finality yet.
  finished_through_ = std::min(finished_through_, ancestor);
  passing_to_ = std::min(passing_to_, ancestor);
  highest_head_ = std::max({highest_head_, ancestor, head == nullptr ? 0 : head->number});
  // An ancestor below the window: the window was replaced, and the reorg may be deeper than is known.
  const auto* bottom = chain_.follower.window().bottom();
  const bool below = bottom != nullptr && ancestor < bottom->number;
  undone_ = Undone{.above = std::min(ancestor, undone_ ? undone_->above : ancestor),
                   .until = highest_head_,
                   .below = below || (undone_ && undone_->below)};
  look_for_violations_at_ = {};
}

void ConfirmationManager::on_missed() {
  unchecked_ = true;
  first_look_ = true;
  worker_.wake();
}

void ConfirmationManager::on_mined(std::int64_t block) {
  if (block <= passing_to_) look_at_all_ = true;
}

void ConfirmationManager::on_taken() {
  unchecked_ = true;
  look_at_all_ = true;
  worker_.wake();
}

// Below the window the branch is not known here; finish() decides those receipts. A receipt above the head is orphaned
// if the head went back; otherwise this node only lags behind.
awaitable<> ConfirmationManager::withdraw_dead(bool head_went_back) {
  const auto& window = chain_.follower.window();
  std::map<SignerKey, std::pair<SignerLease, std::int64_t>> lowest;
  if (window.empty()) co_return;
  const MinedBlocks blocks{.from = window.bottom()->number};
  std::optional<MinedTx> after;
  for (bool more = true; more;) {
    const auto mined =
        co_await mined_open(chain_.database.pool(), chain_.node(), chain_.chain_id(), blocks, after, kMinedAtOnce);
    const auto* head = window.head();
    if (head == nullptr) co_return;
    std::vector<Step> steps;
    for (const auto& tx : mined) {
      const bool above = tx.block > head->number;
      if (above ? head_went_back : window.contains(tx.block, tx.block_hash) == false) {
        new_fork_total_.Increment();
        steps.push_back(unmined_step(tx, "its block " + std::to_string(tx.block) + " is no longer on the chain"));
        auto& low = lowest.try_emplace(tx.lease.key, tx.lease, tx.nonce).first->second;
        low.second = std::min(low.second, tx.nonce);
      } else if (head_went_back || (tx.announced && tx.announced->number <= head->number)) {
        if (auto step = announcement_step(tx, true)) steps.push_back(std::move(*step));
      }
    }
    more = mined.size() == kMinedAtOnce;
    if (more) after = mined.back();
    const bool any = !steps.empty();
    co_await chain_.apply(std::move(steps));
    if (any) test_point("reorg.committed");
  }
  std::vector<std::pair<SignerLease, std::int64_t>> from_nonces;
  from_nonces.reserve(lowest.size());
  for (const auto& [key, low] : lowest) from_nonces.push_back(low);
  // The endpoints may have dropped the transactions at higher nonces from their pools, too.
  co_await make_due_from(chain_.database.pool(), chain_.node(), std::move(from_nonces));
  if (!lowest.empty()) chain_.wake_resubmitter();
}

// Repeats until the new branch is final: until then another reorg may orphan it.
awaitable<> ConfirmationManager::look_for_violations(const evm::FinalBlock& final) {
  const auto now = SteadyClock::real().now();
  if (now < look_for_violations_at_) co_return;
  const auto undone = *undone_;
  auto orphaned = co_await find_orphaned_ends(chain_, undone.above, final.number, undone.below);
  if (!orphaned.all_known) look_for_violations_at_ = now + kLookAtAllInterval;
  const auto found =
      co_await report_finality_violations(chain_.database.pool(), chain_.node(), std::move(orphaned.undone));
  if (!found.announced.empty()) {
    test_point("violations.committed");
    chain_.look_for_gaps();
  }
  for (const auto& one : found.announced) {
    violated_total_.Increment();
    log::error("a reorg has undone a transaction that had ended", {{"chain", chain_.evm_chain.name()},
                                                                   {"txId", one.tx_id.to_string()},
                                                                   {"signer", one.key.signer},
                                                                   {"nodeId", chain_.node()},
                                                                   {"fencingToken", one.fencing_token.value_or(0)},
                                                                   {"nonce", one.nonce.value_or(-1)},
                                                                   {"txHash", one.tx_hash.value_or("")},
                                                                   {"block", one.block}});
  }
  if (!found.all || !orphaned.all_known || undone_ != undone) co_return;
  undone_->below = false;
  if (final.number >= undone.until) undone_.reset();
}

awaitable<Worker::Next> ConfirmationManager::advance() {
  if (const auto* head = chain_.follower.window().head()) highest_head_ = std::max(highest_head_, head->number);
  if (unchecked_ && chain_.follower.synced()) {
    unchecked_ = false;
    // A reorg may also have undone transactions that ended before this node started.
    if (const auto& window = chain_.follower.window(); first_look_ && !window.empty()) {
      first_look_ = false;
      undone_ = Undone{.above = window.bottom()->number - 1, .until = window.head()->number, .below = true};
    }
    try {
      co_await withdraw_dead(false);
    } catch (const std::exception&) {
      unchecked_ = true;
      throw;
    }
  }
  const auto final = co_await chain_.evm_chain.final_block();
  if (final) co_await finish(*final);
  if (final && undone_) co_await look_for_violations(*final);
  if (chain_.options.confirmations.progress) co_await tell_progress(final ? final->number : -1);
  co_return Worker::Next::kRest;
}

// Usually looks only at the blocks that have become final since the last pass. Looks at everything that is open now and
// then, after a takeover, when a receipt comes late, and soon again while a transaction cannot be decided.
awaitable<> ConfirmationManager::finish(evm::FinalBlock final) {
  const auto now = SteadyClock::real().now();
  const bool all = look_at_all_ || now - looked_at_all_ >= (undecided_ ? kUndecidedInterval : kLookAtAllInterval);
  if (!all && final.number <= finished_through_) co_return;
  passing_to_ = std::max(passing_to_, final.number);
  if (all) look_at_all_ = false;  // may be set again during the pass
  try {
    const bool left = co_await finish_pass(final, all);
    undecided_ = left || (undecided_ && !all);
  } catch (const std::exception&) {
    look_at_all_ = true;
    throw;
  }
  finished_through_ = std::max(finished_through_, final.number);
  if (all) looked_at_all_ = now;
}

// Returns whether a transaction is left that should have ended.
awaitable<bool> ConfirmationManager::finish_pass(evm::FinalBlock final, bool all) {
  Asked asked;
  bool left = false;
  std::optional<MinedTx> after;
  for (bool more = true; more;) {
    auto& pool = chain_.database.pool();
    const auto mined =
        all ? co_await mined_open(pool, chain_.node(), chain_.chain_id(), {.to = final.number}, after, kMinedAtOnce)
            : co_await mined_between(pool, chain_.node(), chain_.chain_id(),
                                     {.from = finished_through_ + 1, .to = final.number}, after, kMinedAtOnce);
    std::vector<Step> steps;
    std::vector<const MinedTx*> stepped;
    for (const auto& tx : mined) {
      const auto canonical = co_await is_canonical(tx, final, asked);
      if (auto step = judge(tx, final, canonical, co_await blocks_of(tx, final))) {
        steps.push_back(std::move(*step));
        stepped.push_back(&tx);
      } else {
        left = true;
      }
    }
    more = mined.size() == kMinedAtOnce;
    if (more) after = mined.back();
    const bool any = !steps.empty();
    if (any) test_point("confirmations.ready");
    const auto outcomes = co_await chain_.apply(steps);
    if (any) test_point("confirmations.committed");
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (outcomes[i] != StepOutcome::kDone) left = true;
      if (outcomes[i] == StepOutcome::kDone && steps[i].ends()) {
        observe_age(stepped[i]->age);
      }
    }
  }
  co_return left;
}

// Checks the node's own branch. Where a tag decides finality, the endpoint that answered for the tag must agree.
awaitable<std::optional<bool>> ConfirmationManager::is_canonical(const MinedTx& tx, const evm::FinalBlock& final,
                                                                 Asked& asked) {
  const auto own = co_await chain_.evm_chain.branch().contains(tx.block, tx.block_hash);
  if (own == false) co_return false;
  if (own == true && !final.endpoint) co_return true;
  auto known = asked.find(tx.block);
  if (known == asked.end()) {
    const auto blocks = co_await chain_.connector.blocks(tx.block, 1, final.endpoint);
    const bool there = blocks && !blocks->empty();
    known = asked.emplace(tx.block, there ? std::optional(blocks->front().header.hash) : std::nullopt).first;
  }
  if (!known->second) co_return std::nullopt;
  const bool same = *known->second == tx.block_hash;
  // The own branch has the block and the endpoint has another: one of the two is stale, so decide nothing.
  if (own == true && !same) co_return std::nullopt;
  co_return same;
}

// The blocks that made the transaction final. Later blocks add no information and are not stored.
std::size_t ConfirmationManager::kept_blocks(const MinedTx& tx, const evm::FinalBlock& final) const {
  const auto& rule = chain_.evm_chain.finality();
  const auto wanted =
      rule.kind == evm::FinalityRule::Kind::kDepth ? std::int64_t{rule.depth} + 1 : final.number - tx.block + 1;
  return std::min(static_cast<std::size_t>(wanted), kListLimit);
}

// A receipt below the window has its blocks in the stored headers.
awaitable<ConfirmationManager::Confirming> ConfirmationManager::blocks_of(const MinedTx& tx,
                                                                          const evm::FinalBlock& final) {
  Confirming out;
  const auto list = confirmation_list(chain_.follower.window(), tx.block, tx.block_hash);
  if (!list.empty()) {
    // The last announced block may be on a branch that was orphaned since.
    const auto announcement = next_announcement(list, {.last = tx.announced, .withdrawn = false});
    out.new_fork = announcement && announcement->new_fork;
    out.blocks = to_json(std::span(list).first(std::min(list.size(), kept_blocks(tx, final))));
    co_return out;
  }
  auto& branch = chain_.evm_chain.branch();
  std::vector<BlockRef> stored;
  for (auto& header : co_await branch.from(tx.block, kept_blocks(tx, final))) {
    stored.push_back({header.number, std::move(header.hash), std::move(header.parent_hash)});
  }
  if (stored.empty() || stored.front().hash != tx.block_hash) co_return out;
  out.new_fork = tx.announced && co_await branch.contains(tx.announced->number, tx.announced->hash) == false;
  out.blocks = to_json(stored);
  co_return out;
}

std::optional<Step> ConfirmationManager::judge(const MinedTx& tx, const evm::FinalBlock& final,
                                               std::optional<bool> canonical, Confirming confirming) {
  const auto* head = chain_.follower.window().head();
  if (head == nullptr) return std::nullopt;
  const ChainFacts facts{.head_number = head->number, .final_number = final.number, .mined_is_canonical = canonical};
  const auto decision = decide(to_open_tx(tx), facts);
  if (decision.verdict == Verdict::kUnmined) {
    new_fork_total_.Increment();
    return unmined_step(tx, decision.why);
  }
  const auto to = state_after(tx.state, decision.verdict);
  if (!kManagedTx.terminal(to)) return std::nullopt;

  Step step(tx.lease, tx.tx_id, tx.state, to, decision.why);
  step.expect_receipt_hash = tx.block_hash;
  step.sub_state = failure_reason(decision.verdict);
  step.confirmations = boost::json::serialize(confirming.blocks);
  boost::json::object about{{"txHash", tx.tx_hash},
                            {"nonce", tx.nonce},
                            {"blockNumber", tx.block},
                            {"blockHash", tx.block_hash},
                            {"confirmations", std::move(confirming.blocks)},
                            {"newFork", confirming.new_fork}};
  if (to == TxState::kFailedFinal) {
    step.error = decision.verdict == Verdict::kReverted ? tx.error.value_or(decision.why) : decision.why;
    about["reason"] = kSubStates.name(*step.sub_state);
    about["detail"] = *step.error;
  }
  step.events.emplace_back(to == TxState::kConfirmed ? TxEvent::kConfirmed : TxEvent::kFailed,
                           event_json(tx.lease.key, tx.tx_id, std::move(about)));
  return step;
}

std::optional<Step> ConfirmationManager::announcement_step(const MinedTx& tx, bool only_new_fork) {
  const auto list = confirmation_list(chain_.follower.window(), tx.block, tx.block_hash);
  if (list.empty()) return std::nullopt;  // the receipt's block is not in the window: nothing to announce now
  const auto announcement = next_announcement(list, {.last = tx.announced, .withdrawn = false});
  if (!announcement || (only_new_fork && !announcement->new_fork)) return std::nullopt;
  Step step(tx.lease, tx.tx_id, tx.state, tx.state, "confirmations");
  step.quiet = true;
  step.expect_receipt_hash = tx.block_hash;
  step.announced = announcement->then.last;
  step.events.push_back(confirmations_event(tx.lease.key, tx.tx_id, *announcement));
  if (announcement->new_fork) new_fork_total_.Increment();
  return step;
}

awaitable<> ConfirmationManager::tell_progress(std::int64_t final_number) {
  const auto* head = chain_.follower.window().head();
  if (head == nullptr || told_head_ == head->hash) co_return;
  const auto head_hash = head->hash;
  std::optional<MinedTx> after;
  for (bool more = true; more;) {
    const auto mined = co_await mined_open(chain_.database.pool(), chain_.node(), chain_.chain_id(),
                                           {.from = final_number + 1}, after, kMinedAtOnce);
    std::vector<Step> steps;
    for (const auto& tx : mined) {
      if (auto step = announcement_step(tx, false)) steps.push_back(std::move(*step));
    }
    more = mined.size() == kMinedAtOnce;
    if (more) after = mined.back();
    co_await chain_.apply(std::move(steps));
  }
  told_head_ = head_hash;
}

void ConfirmationManager::observe_age(std::chrono::milliseconds age) {
  if (create_to_final_ == nullptr) {
    create_to_final_ =
        &chain_.metrics.lifetime("tx_create_to_final_seconds", "From the create request to the final state",
                                 {{"chain", chain_.evm_chain.name()}});
  }
  create_to_final_->Observe(static_cast<double>(age.count()) / 1000.0);
}

}  // namespace fencepost::tx
