#include "tx/confirmation_manager.hpp"

#include <boost/json/serialize.hpp>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/confirmation_list.hpp"
#include "tx/finality.hpp"
#include "tx/mining.hpp"
#include "tx/reorg_store.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kBatch = 500;
constexpr std::size_t kListLimit = 512;  // blocks in a stored list, for rules that take hundreds
constexpr auto kEndOfChain = std::numeric_limits<std::int64_t>::max();

OpenTx to_open_tx(const MinedTx& tx) {
  return {.state = tx.state,
          .nonce = tx.nonce,
          .attempts = {{tx.tx_hash, find_attempt_kind(tx.attempt_kind).value()}},
          .mined = Inclusion{tx.tx_hash, tx.receipt.block, tx.receipt.block_hash, tx.succeeded}};
}

}  // namespace

ConfirmationManager::ConfirmationManager(ChainContext& chain)
    : chain_(chain),
      new_fork_total_(chain.metrics.counter("confirmations_newFork_total", "Times a told list was replaced")),
      violated_total_(chain.metrics.counter("tx_finality_violated_total", "Ended transactions undone by a reorg")),
      create_to_final_(chain.metrics.latency("tx_create_to_final_seconds", "From creation to the end")),
      worker_(
          chain.home,
          {.name = "tx_confirmations", .interval = std::chrono::seconds(2), .stop_grace = ChainContext::kStopGrace},
          [this] { return advance(); }, chain.metrics) {}

awaitable<> ConfirmationManager::on_reorg(std::int64_t ancestor) {
  std::map<SignerKey, std::pair<SignerLease, std::int64_t>> lowest;
  for (std::int64_t from = ancestor + 1;;) {
    const auto mined =
        co_await mined_between(chain_.database.pool(), chain_.node(), chain_.chain_id(), from, kEndOfChain, kBatch);
    std::vector<Step> steps;
    for (const auto& tx : mined) {
      const auto* head = chain_.follower.window().head();
      const bool above = head != nullptr && tx.receipt.block > head->number;  // of a head that went back
      // Below the window nobody can tell; the rules of the end decide later.
      if (!above && chain_.follower.window().contains(tx.receipt.block, tx.receipt.block_hash) != false) continue;
      steps.push_back(unmined_step(tx, "its block " + std::to_string(tx.receipt.block) + " is no longer on the chain"));
      auto& low = lowest.try_emplace(tx.lease.key, tx.lease, tx.nonce).first->second;
      low.second = std::min(low.second, tx.nonce);
    }
    new_fork_total_.Increment(static_cast<double>(steps.size()));
    const auto withdrawn = steps.size();
    co_await chain_.apply(std::move(steps));
    test_point("reorg.committed");
    if (mined.size() < kBatch) break;
    // Those that were withdrawn no longer show; go past the others.
    if (withdrawn == 0) from = mined.back().receipt.block + 1;
  }
  std::vector<std::pair<SignerLease, std::int64_t>> from_nonces;
  for (const auto& [key, low] : lowest) from_nonces.push_back(low);
  // Those behind may have left the pool with it.
  co_await make_due_from(chain_.database.pool(), chain_.node(), std::move(from_nonces));
  if (!lowest.empty()) chain_.wake_resubmitter();

  const auto* head = chain_.follower.window().head();
  const auto until = std::max(head == nullptr ? ancestor : head->number, undone_ ? undone_->until : ancestor);
  undone_ = Undone{std::min(ancestor, undone_ ? undone_->above : ancestor), until};
}

// Again and again until the new branch is final: before that it may be the one that dies.
awaitable<> ConfirmationManager::look_for_violations(const FinalBlock& final) {
  const auto undone = *undone_;
  for (const auto& tx_id : co_await report_finality_violations(chain_.database.pool(), chain_.node(), chain_.chain_id(),
                                                               undone.above, final.number, chain_.follower.window())) {
    violated_total_.Increment();
    log::error("a reorg has undone a final transaction", {{"txId", tx_id.to_string()}});
  }
  if (final.number >= undone.until && undone_ && undone_->until == undone.until) undone_.reset();
}

awaitable<Worker::Next> ConfirmationManager::advance() {
  const auto final = co_await final_block(chain_);
  std::int64_t from = 0;
  while (final) {
    std::int64_t last = from;
    const auto seen = co_await finish(*final, from, last);
    if (seen < kBatch) break;
    from = last;  // the rest of that block comes again; what was ended does not
  }
  if (final && undone_) co_await look_for_violations(*final);
  if (chain_.options.confirmations.progress) co_await tell_progress(final ? final->number : -1);
  co_return Worker::Next::kRest;
}

awaitable<std::size_t> ConfirmationManager::finish(FinalBlock final, std::int64_t from, std::int64_t& last) {
  const auto mined =
      co_await mined_between(chain_.database.pool(), chain_.node(), chain_.chain_id(), from, final.number, kBatch);
  std::vector<Step> steps;
  std::vector<double> ages;
  for (const auto& tx : mined) {
    const auto canonical = co_await is_canonical(tx, final);
    if (auto step = judge(tx, final, canonical)) {
      if (step->final) ages.push_back(static_cast<double>(tx.age.count()) / 1000.0);
      steps.push_back(std::move(*step));
    }
  }
  if (!mined.empty()) last = mined.back().receipt.block;
  // A full page of transactions that cannot be decided must not be read for ever.
  if (steps.empty() && mined.size() == kBatch && last == from) ++last;
  const bool any = !steps.empty();
  co_await chain_.apply(std::move(steps));
  if (any) test_point("confirmations.committed");
  for (const auto age : ages) create_to_final_.Observe(age);
  co_return mined.size();
}

// By the node's own walk; and where a tag says what is final, also by the endpoint that said it.
awaitable<std::optional<bool>> ConfirmationManager::is_canonical(const MinedTx& tx, const FinalBlock& final) {
  auto own = chain_.follower.window().contains(tx.receipt.block, tx.receipt.block_hash);
  if (own == false) co_return false;
  if (own == true && !final.endpoint) co_return true;
  const auto blocks = co_await chain_.connector.blocks(tx.receipt.block, 1, final.endpoint);
  if (!blocks || blocks->empty()) co_return std::nullopt;
  const bool same = blocks->front().header.hash == tx.receipt.block_hash;
  // Our own branch has it and theirs has not: somebody is behind. Nothing is decided.
  if (own == true && !same) co_return std::nullopt;
  co_return same;
}

// As many as made it final: what came on top later says nothing more.
std::size_t ConfirmationManager::kept_blocks(const MinedTx& tx, const FinalBlock& final) const {
  const auto& rule = chain_.options.confirmations.required;
  const auto wanted =
      rule.kind == Finality::Kind::kDepth ? std::int64_t{rule.depth} + 1 : final.number - tx.receipt.block + 1;
  return std::min(static_cast<std::size_t>(wanted), kListLimit);
}

std::optional<Step> ConfirmationManager::judge(const MinedTx& tx, const FinalBlock& final,
                                               std::optional<bool> canonical) {
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
  step.expect_receipt_hash = tx.receipt.block_hash;
  step.sub_state = std::string(failure_reason(decision.verdict));
  step.final = true;
  const auto list = confirmation_list(chain_.follower.window(), tx.receipt.block, tx.receipt.block_hash);
  const auto confirmations = to_json(std::span(list).first(std::min(list.size(), kept_blocks(tx, final))));
  step.confirmations = boost::json::serialize(confirmations);
  // What was told last may be on a branch that died after we told it and before we looked again.
  const auto telling = list.empty() ? std::nullopt : next_telling(list, {.last = tx.told, .withdrawn = false});
  const bool new_fork = telling && telling->new_fork;
  boost::json::object about{{"txHash", tx.tx_hash},
                            {"nonce", tx.nonce},
                            {"blockNumber", tx.receipt.block},
                            {"blockHash", tx.receipt.block_hash},
                            {"confirmations", confirmations},
                            {"newFork", new_fork}};
  if (to == TxState::kFailedFinal) about["reason"] = failure_reason(decision.verdict);
  step.events.emplace_back(to == TxState::kConfirmed ? "TxConfirmed" : "TxFailed",
                           event_json(tx.lease.key, tx.tx_id, std::move(about)));
  return step;
}

awaitable<> ConfirmationManager::tell_progress(std::int64_t final_number) {
  const auto* head = chain_.follower.window().head();
  if (head == nullptr || told_head_ == head->number) co_return;
  const auto head_number = head->number;
  for (std::int64_t from = final_number + 1;;) {
    const auto mined =
        co_await mined_between(chain_.database.pool(), chain_.node(), chain_.chain_id(), from, kEndOfChain, kBatch);
    std::vector<Step> steps;
    for (const auto& tx : mined) {
      const auto list = confirmation_list(chain_.follower.window(), tx.receipt.block, tx.receipt.block_hash);
      if (list.empty()) continue;  // not ours to tell now
      const auto telling = next_telling(list, {.last = tx.told, .withdrawn = false});
      if (!telling) continue;
      Step step(tx.lease, tx.tx_id, tx.state, tx.state, "confirmations");
      step.quiet = true;
      step.expect_receipt_hash = tx.receipt.block_hash;
      step.told = telling->then.last;
      step.events.push_back(confirmations_event(tx.lease.key, tx.tx_id, *telling));
      if (telling->new_fork) new_fork_total_.Increment();
      steps.push_back(std::move(step));
    }
    co_await chain_.apply(std::move(steps));
    if (mined.size() < kBatch) break;
    from = std::max(from + 1, mined.back().receipt.block);
  }
  told_head_ = head_number;
}

}  // namespace fencepost::tx
