#include "tx/workers/receipt_checker.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/model/finality.hpp"
#include "tx/service/block_check.hpp"
#include "tx/service/mined_after_end.hpp"
#include "tx/service/receipt_steps.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kHashesPerQuery = 5'000;
constexpr std::size_t kHashesPerBatch = 100;
constexpr std::size_t kStaleLimit = 2'000;
constexpr int kRounds = 5;

// Without duplicates: one transaction may match with several attempts.
std::vector<Uuid> ids_of(const std::vector<Match>& matches) {
  std::vector<Uuid> ids;
  for (const auto& match : matches) {
    if (ids.empty() || ids.back() != match.tx_id) ids.push_back(match.tx_id);
  }
  return ids;
}

// Whether this receipt, found on the own branch, changes the transaction by the rules of finality.hpp.
bool moves(const Match& match, const evm::Receipt& receipt, std::int64_t head_number) {
  if (match.receipt_hash) return false;  // already mined; the receipt of an orphaned block is withdrawn first
  const OpenTx tx{.state = match.state, .nonce = match.nonce, .attempts = {{match.attempt_hash, match.attempt_kind}}};
  const ChainFacts facts{.head_number = head_number,
                         .found = {{receipt.tx_hash, receipt.block_number, receipt.block_hash, receipt.succeeded}}};
  return decide(tx, facts).verdict == Verdict::kMined;
}

}  // namespace

struct ReceiptChecker::StaleBatch {
  std::vector<Match> matches;
  std::shared_ptr<Completion<bool>> done;
  std::shared_ptr<std::size_t> left;
  std::shared_ptr<std::vector<std::pair<Match, evm::Receipt>>> found;
};

ReceiptChecker::ReceiptChecker(ChainContext& chain)
    : chain_(chain),
      checks_(chain.home, "receipt checks", chain.options.confirmations.receipt_workers),
      missing_(chain.evm_chain.name(), chain.metrics),
      worker_(
          chain.home,
          {.name = "tx_receipt_checker",
           .chain = chain.evm_chain.name(),
           .interval = std::chrono::seconds(1),
           .stop_grace = ChainContext::kStopGrace},
          [this] { return check(); }, chain.metrics) {
  for (const auto* result : {"found", "missing", "not_found", "other_branch", "error"}) count(result, 0);
}

awaitable<> ReceiptChecker::stop() {
  co_await worker_.stop();
  co_await checks_.stop(std::chrono::milliseconds(500));
}

awaitable<> ReceiptChecker::on_blocks(const std::vector<evm::Block>& blocks) {
  std::vector<std::string> hashes;
  std::set<std::size_t> failed;
  BlockOf block_of;
  for (const auto& block : blocks) {
    for (const auto& hash : block.transactions) {
      hashes.push_back(hash);
      block_of.emplace(hash, &block);
    }
  }
  for (std::size_t begin = 0; begin < hashes.size(); begin += kHashesPerQuery) {
    const auto matches =
        co_await find_matches(std::span(hashes).subspan(begin, std::min(kHashesPerQuery, hashes.size() - begin)));
    co_await report_ended(std::span(hashes).subspan(begin, std::min(kHashesPerQuery, hashes.size() - begin)), matches,
                          block_of);
    std::unordered_map<const evm::Block*, std::vector<const Match*>> by_block;
    for (const auto& match : matches) by_block[block_of.at(match.attempt_hash)].push_back(&match);

    std::vector<std::pair<Match, evm::Receipt>> found;
    for (const auto& [block, in_block] : by_block) {
      auto receipts = co_await receipts_of(*block, in_block, failed);
      for (const auto* match : in_block) {
        const auto it = receipts.find(match->attempt_hash);
        if (it != receipts.end()) {
          found.emplace_back(*match, std::move(it->second));
        } else if (!match->receipt_hash) {
          count("missing", 1);
          missing_.add(match->attempt_hash, {block->header.number, block->header.hash});
        }
      }
    }
    co_await store(std::move(found));
  }
}

// A transaction that is open is no news here.
awaitable<> ReceiptChecker::report_ended(std::span<const std::string> hashes, const std::vector<Match>& matches,
                                         const BlockOf& block_of) {
  std::set<std::string_view> open;
  for (const auto& match : matches) open.insert(match.attempt_hash);
  std::vector<std::string> others;
  for (const auto& hash : hashes) {
    if (!open.contains(hash)) others.push_back(hash);
  }
  for (auto& hash : co_await find_mined_after_end(chain_.database.pool(), chain_.chain_id(), std::move(others))) {
    const auto& header = block_of.at(hash)->header;
    ended_.push_back({std::move(hash), header.number, header.hash});
  }
  co_await report_ended();
}

// What another session has locked is left for the next round.
awaitable<> ReceiptChecker::report_ended() {
  if (ended_.empty()) co_return;
  auto left = co_await report_mined_after_end(chain_, std::exchange(ended_, {}));
  std::ranges::move(left, std::back_inserter(ended_));
}

// Without those that cannot be had now. They must not hold up the updates after this one: the endpoint that served the
// block may be gone for good, and the next update may be the reorg away from that block. An endpoint that failed is not
// asked again for the same update.
awaitable<std::unordered_map<std::string, evm::Receipt>> ReceiptChecker::receipts_of(
    const evm::Block& block, const std::vector<const Match*>& matches, std::set<std::size_t>& failed) {
  std::unordered_map<std::string, evm::Receipt> by_hash;
  if (failed.contains(block.endpoint)) co_return by_hash;
  std::vector<std::string> wanted;
  wanted.reserve(matches.size());
  for (const auto* match : matches) wanted.push_back(match->attempt_hash);
  auto receipts = co_await chain_.connector.receipts_in_block(block.header.hash, std::move(wanted), block.endpoint);
  if (!receipts) {
    failed.insert(block.endpoint);
    count("error", matches.size());
    log::warn("the receipts of a block cannot be had now: retrying", receipts.error(),
              {{"chain", chain_.evm_chain.name()}, {"block", block.header.number}, {"receipts", matches.size()}});
    co_return by_hash;
  }
  for (auto& receipt : *receipts) {
    auto hash = receipt.tx_hash;
    by_hash.emplace(std::move(hash), std::move(receipt));
  }
  co_return by_hash;
}

// Looks up only what this node has not just sent itself, under a lease that it still holds.
awaitable<std::vector<Match>> ReceiptChecker::find_matches(std::span<const std::string> hashes) {
  std::vector<Match> matches;
  std::vector<std::string> unknown;
  for (const auto& hash : hashes) {
    auto sent = chain_.sent.take(hash);
    const auto lease = sent ? chain_.leases.held(sent->lease.key) : std::nullopt;
    if (lease && lease->fencing_token == sent->lease.fencing_token) {
      matches.push_back(std::move(*sent));
    } else {
      unknown.push_back(hash);
    }
  }
  if (unknown.empty()) co_return matches;
  auto found = co_await match_attempts(chain_.database.pool(), chain_.node(), chain_.chain_id(), std::move(unknown));
  std::ranges::move(found, std::back_inserter(matches));
  co_return matches;
}

// Those that reverted come last: the chain is asked why first, and an endpoint that does not answer must not hold up
// the others.
awaitable<> ReceiptChecker::store(Found found) {
  Found succeeded, reverted;
  for (auto& one : found) {
    const bool known = one.first.receipt_hash.has_value();  // one that has its receipt already keeps its reason
    if (one.second.succeeded) {
      succeeded.push_back(std::move(one));
    } else if (!known) {
      reverted.push_back(std::move(one));
    }
  }
  co_await store_all(std::move(succeeded), {});
  if (reverted.empty()) co_return;
  std::vector<evm::Receipt> receipts;
  for (const auto& [match, receipt] : reverted) receipts.push_back(receipt);
  const auto reasons = co_await why_reverted(chain_, std::move(receipts));
  RevertReasons by_hash;
  for (std::size_t i = 0; i < reverted.size(); ++i) by_hash.emplace(reverted[i].second.tx_hash, reasons[i]);
  co_await store_all(std::move(reverted), by_hash);
}

// Another worker may change a transaction between the read and the write: the submitter may store that its broadcast
// was accepted after the block arrived. Such a transaction is read and written again.
awaitable<> ReceiptChecker::store_all(Found found, const RevertReasons& reasons) {
  for (int round = 0; round < kRounds && !found.empty(); ++round) {
    auto moved = co_await store_once(std::move(found), reasons);
    found.clear();
    if (moved.empty()) co_return;
    std::vector<std::string> hashes;
    std::unordered_map<std::string, evm::Receipt> receipt_of;
    for (auto& [match, receipt] : moved) {
      hashes.push_back(receipt.tx_hash);
      receipt_of.emplace(receipt.tx_hash, std::move(receipt));
    }
    for (auto& match : co_await match_attempts(chain_.database.pool(), chain_.node(), chain_.chain_id(), hashes)) {
      auto& receipt = receipt_of.at(match.attempt_hash);
      found.emplace_back(std::move(match), std::move(receipt));
    }
  }
}

awaitable<ReceiptChecker::Found> ReceiptChecker::store_once(Found found, const RevertReasons& reasons) {
  Found moved;
  const auto* head = chain_.follower.window().head();
  if (head == nullptr) co_return moved;
  std::vector<Step> steps;
  std::vector<std::size_t> place;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& [match, receipt] = found[i];
    if (!moves(match, receipt, head->number)) continue;
    // The window may have changed since the block was announced.
    if (chain_.follower.window().contains(receipt.block_number, receipt.block_hash) == false) continue;
    const auto reason = reasons.find(receipt.tx_hash);
    steps.push_back(mined_step(chain_, match, receipt, reason == reasons.end() ? "" : reason->second));
    place.push_back(i);
  }
  if (steps.empty()) co_return moved;
  test_point("receipts.ready");
  const auto outcomes = co_await chain_.apply(std::move(steps));
  test_point("receipts.committed");
  std::size_t done = 0;
  std::vector<std::string> mined;
  for (std::size_t k = 0; k < outcomes.size(); ++k) {
    auto& one = found[place[k]];
    if (outcomes[k] == StepOutcome::kMoved) {
      moved.push_back(std::move(one));
      continue;
    }
    if (outcomes[k] != StepOutcome::kDone) continue;
    ++done;
    mined.push_back(one.first.lease.key.signer);
    if (one.first.since_submit) observe_wait(*one.first.since_submit);
  }
  count("found", done);
  chain_.wake_promoter(std::move(mined));
  co_return moved;
}

awaitable<Worker::Next> ReceiptChecker::check() {
  co_await report_ended();
  const auto missing = co_await check_missing();
  const auto stale = co_await check_stale();
  co_return missing == Worker::Next::kAgain ? missing : stale;
}

awaitable<Worker::Next> ReceiptChecker::check_missing() {
  missing_.forget_dead(chain_.follower.window());
  const auto due = missing_.take_due(std::chrono::steady_clock::now(), kHashesPerBatch);
  if (due.empty()) co_return Worker::Next::kRest;
  std::vector<std::string> hashes;
  hashes.reserve(due.size());
  for (const auto& one : due) hashes.push_back(one.tx_hash);
  // A transaction that has a receipt by now, has ended, or is led by another node is no longer missing here.
  auto matches = co_await match_attempts(chain_.database.pool(), chain_.node(), chain_.chain_id(), hashes);
  std::erase_if(matches, [](const Match& match) { return match.receipt_hash.has_value(); });
  const auto endpoints = usable_endpoints(chain_.connector);
  std::map<std::size_t, std::vector<Match>> by_endpoint;
  for (const auto& one : due) {
    const auto match = std::ranges::find(matches, one.tx_hash, &Match::attempt_hash);
    if (match == matches.end()) {
      missing_.remove(one.tx_hash);
    } else {
      by_endpoint[endpoints[one.tries % endpoints.size()]].push_back(*match);
    }
  }
  for (auto& [endpoint, some] : by_endpoint) co_await look_up(std::move(some), endpoint);
  co_return due.size() == kHashesPerBatch ? Worker::Next::kAgain : Worker::Next::kRest;
}

awaitable<> ReceiptChecker::look_up(std::vector<Match> matches, std::size_t endpoint) {
  std::vector<std::string> hashes;
  hashes.reserve(matches.size());
  for (const auto& match : matches) hashes.push_back(match.attempt_hash);
  const auto receipts = co_await chain_.connector.receipts(std::move(hashes), endpoint);
  std::vector<std::pair<Match, evm::Receipt>> found;
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (!receipts[i] || !*receipts[i]) {
      count(receipts[i] ? "missing" : "error", 1);
      continue;
    }
    const bool ours = co_await on_own_branch(chain_, **receipts[i]) == true;
    if (ours) found.emplace_back(matches[i], **receipts[i]);
    if (!ours) count("other_branch", 1);
  }
  co_await store(std::move(found));
}

std::optional<evm::Listing> ReceiptChecker::listing(const std::string& tx_hash) const {
  if (auto listing = chain_.follower.listing(tx_hash)) return listing;
  return missing_.find(tx_hash);
}

void ReceiptChecker::on_missed() {
  missed_since_ = std::chrono::steady_clock::now();
  worker_.wake();
}

// After skipped blocks: the time since then, so that each open transaction is looked up once.
std::chrono::milliseconds ReceiptChecker::stale_after() {
  const auto timeout = chain_.options.confirmations.stale_receipt_timeout;
  if (!missed_since_) return timeout;
  const auto since = std::chrono::steady_clock::now() - *missed_since_;
  return std::min(timeout, std::chrono::duration_cast<std::chrono::milliseconds>(since));
}

awaitable<Worker::Next> ReceiptChecker::check_stale() {
  const auto missed_since = missed_since_;
  const auto matches =
      co_await stale_receipts(chain_.database.pool(), chain_.node(), chain_.chain_id(), stale_after(), kStaleLimit);
  if (chain_.follower.window().empty()) co_return Worker::Next::kRest;
  if (matches.size() < kStaleLimit && missed_since_ == missed_since) missed_since_.reset();
  if (matches.empty()) co_return Worker::Next::kRest;
  const auto done = std::make_shared<Completion<bool>>(chain_.home);
  const auto found = std::make_shared<std::vector<std::pair<Match, evm::Receipt>>>();
  const auto left = std::make_shared<std::size_t>((matches.size() + kHashesPerBatch - 1) / kHashesPerBatch);
  for (std::size_t begin = 0; begin < matches.size(); begin += kHashesPerBatch) {
    auto batch = std::make_shared<StaleBatch>();
    const auto end = std::min(begin + kHashesPerBatch, matches.size());
    batch->matches.assign(matches.begin() + static_cast<std::ptrdiff_t>(begin),
                          matches.begin() + static_cast<std::ptrdiff_t>(end));
    batch->done = done;
    batch->left = left;
    batch->found = found;
    // All receipt workers are busy: run the batch here.
    if (!checks_.spawn(check_batch(batch))) co_await check_batch(batch);
  }
  co_await done->wait();
  // Store the time of the lookup whatever its result, so that the next lookup takes other transactions first.
  co_await note_receipt_checks(chain_.database.pool(), ids_of(matches));
  co_await store(std::move(*found));
  co_return matches.size() >= kStaleLimit ? Worker::Next::kAgain : Worker::Next::kRest;
}

awaitable<> ReceiptChecker::check_batch(std::shared_ptr<StaleBatch> batch) {
  // Count the batch as done even if it throws: check_stale waits for all batches.
  const auto counted = [](StaleBatch* one) {
    if (--*one->left == 0) one->done->complete(true);
  };
  const std::unique_ptr<StaleBatch, decltype(counted)> on_exit(batch.get(), counted);
  std::vector<std::string> hashes;
  for (const auto& match : batch->matches) hashes.push_back(match.attempt_hash);
  const auto receipts = co_await chain_.connector.receipts(std::move(hashes));
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    const auto& receipt = receipts[i];
    if (!receipt) {
      count("error", 1);
    } else if (!*receipt) {
      count("not_found", 1);
      const auto& hash = batch->matches[i].attempt_hash;
      if (const auto listing = chain_.follower.listing(hash)) missing_.add(hash, *listing);
    } else {
      const auto ours = co_await on_own_branch(chain_, **receipt);
      if (ours == true) batch->found->emplace_back(batch->matches[i], **receipt);
      if (ours != true) count("other_branch", 1);
    }
  }
}

void ReceiptChecker::count(std::string_view result, std::size_t n) {
  chain_.metrics
      .counter("receipt_check_total", "Receipt lookups, by result",
               {{"chain", chain_.evm_chain.name()}, {"result", std::string(result)}})
      .Increment(static_cast<double>(n));
}

void ReceiptChecker::observe_wait(std::chrono::milliseconds since_submit) {
  if (submit_to_mined_ == nullptr) {
    submit_to_mined_ = &chain_.metrics.lifetime("tx_submit_to_mined_seconds", "From the first broadcast to the receipt",
                                                {{"chain", chain_.evm_chain.name()}});
  }
  submit_to_mined_->Observe(static_cast<double>(since_submit.count()) / 1000.0);
}

}  // namespace fencepost::tx
