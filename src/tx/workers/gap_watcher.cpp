#include "tx/workers/gap_watcher.hpp"

#include <algorithm>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"

namespace fencepost::tx {
namespace {

constexpr std::chrono::seconds kGapInterval{1};
constexpr std::chrono::seconds kBetweenLooks{3};
constexpr std::size_t kSignersPerLook = 200;

}  // namespace

GapWatcher::GapWatcher(ChainContext& chain)
    : chain_(chain),
      worker_(
          chain.home,
          {.name = "tx_gap_watcher",
           .chain = chain.evm_chain.name(),
           .interval = kGapInterval,
           .stop_grace = ChainContext::kStopGrace},
          [this] { return watch(); }, chain.metrics) {}

void GapWatcher::look_now() {
  look_at_all_ = true;
  worker_.wake();
}

awaitable<Worker::Next> GapWatcher::watch() {
  const auto leases = chain_.leases.held_on(chain_.chain_id());
  Led led;
  for (const auto& lease : leases) led.emplace(lease.key, &lease);
  std::erase_if(seen_, [&](const auto& one) { return !led.contains(one.first); });
  if (leases.empty() || !chain_.follower.synced()) co_return Worker::Next::kRest;
  const auto cursors = co_await read_cursors(chain_.database.pool(), leases, chain_.options.nonce.nonce_state_timeout);
  auto due = due_of(led, cursors);
  for (std::size_t begin = 0; begin < due.size(); begin += kSignersPerLook) {
    const auto end = std::min(begin + kSignersPerLook, due.size());
    co_await look({due.begin() + static_cast<std::ptrdiff_t>(begin), due.begin() + static_cast<std::ptrdiff_t>(end)});
  }
  co_return Worker::Next::kRest;
}

// Every signer now and then; one that may have a gap, soon again. Where chain queries are disabled, only after a reorg.
std::vector<SignerLease> GapWatcher::due_of(const Led& led, const std::vector<Cursor>& cursors) {
  const bool all = look_at_all_.exchange(false);
  const auto now = SteadyClock::real().now();
  const auto& nonce = chain_.options.nonce;
  std::vector<SignerLease> due;
  for (const auto& cursor : cursors) {
    const auto lease = led.find(cursor.key);
    if (lease == led.end() || !cursor.next_nonce || cursor.reason == ReconcileReason::kChainAhead) continue;
    const auto [it, is_new] = seen_.try_emplace(cursor.key);
    auto& seen = it->second;
    seen.stored = cursor.gap_nonce;
    const bool routine = nonce.chain_query_enabled && (is_new || now - seen.looked_at >= nonce.nonce_state_timeout);
    seen.due = seen.due || all || routine;
    if (seen.due || seen.stored || seen.suspected) due.push_back(*lease->second);
  }
  return due;
}

awaitable<> GapWatcher::look(std::vector<SignerLease> leases) {
  const auto counted = co_await counts_of(std::move(leases));
  if (counted.empty()) co_return;
  auto gaps = co_await find_gaps(chain_.database.pool(), counted);
  std::vector<GapNote> notes;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    note_look(counted[i].lease.key);
    if (gaps[i] && co_await on_own_branch_still(*gaps[i])) gaps[i].reset();
    if (auto note = judge(counted[i], gaps[i])) notes.push_back(std::move(*note));
  }
  co_await store(std::move(notes));
}

void GapWatcher::note_look(const SignerKey& key) {
  const auto seen = seen_.find(key);
  if (seen == seen_.end()) return;
  seen->second.due = false;
  seen->second.looked_at = SteadyClock::real().now();
}

// One endpoint gives both counts: `pending` includes what its pool can mine next, for instance a transaction of another
// wallet. Signers whose counts it does not give are left out.
awaitable<std::vector<CountedSigner>> GapWatcher::counts_of(std::vector<SignerLease> leases) {
  std::vector<CountedSigner> out;
  const auto* own = chain_.follower.window().head();
  if (own == nullptr) co_return out;
  const auto known = std::max(own->number, chain_.connector.highest_head().value_or(0));
  const auto head = co_await chain_.connector.head_reaching(known);
  if (!head) co_return out;
  std::vector<std::string> signers;
  signers.reserve(leases.size());
  for (const auto& lease : leases) signers.push_back(lease.key.signer);
  const auto latest = co_await chain_.connector.nonces(signers, evm::NonceTag::kLatest, head->endpoint);
  const auto pending = co_await chain_.connector.nonces(signers, evm::NonceTag::kPending, head->endpoint);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (latest[i] && pending[i]) out.push_back({std::move(leases[i]), std::max(*latest[i], *pending[i])});
  }
  co_return out;
}

// Whether the transaction that had the nonce is in a block of this node's branch: then the endpoint's count is wrong.
awaitable<bool> GapWatcher::on_own_branch_still(const Gap& gap) {
  if (!gap.receipt_block || !gap.receipt_hash) co_return false;
  const auto there = co_await chain_.evm_chain.branch().contains(*gap.receipt_block, *gap.receipt_hash);
  co_return there == true;
}

std::optional<GapNote> GapWatcher::judge(const CountedSigner& signer, const std::optional<Gap>& gap) {
  const auto it = seen_.find(signer.lease.key);
  if (it == seen_.end()) return std::nullopt;
  auto& seen = it->second;
  if (!gap) {
    seen.suspected.reset();
    if (!seen.stored) return std::nullopt;
    return GapNote{signer, std::nullopt};
  }
  if (seen.stored == gap->nonce) return std::nullopt;
  if (seen.stored) return GapNote{signer, gap->nonce};
  const auto now = SteadyClock::real().now();
  if (seen.suspected != gap->nonce) {
    seen.suspected = gap->nonce;
    seen.suspected_at = now;
    return std::nullopt;
  }
  if (now - seen.suspected_at < kBetweenLooks) return std::nullopt;
  return GapNote{signer, gap->nonce};
}

awaitable<> GapWatcher::store(std::vector<GapNote> notes) {
  if (notes.empty()) co_return;
  const auto results = co_await note_gaps(chain_.database.pool(), chain_.node(), notes);
  test_point("gaps.committed");
  std::vector<std::string> free_again;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& lease = notes[i].signer.lease;
    if (results[i].outcome == NoteOutcome::kFenced) chain_.leases.lost(lease);
    if (results[i].outcome == NoteOutcome::kFenced || results[i].outcome == NoteOutcome::kMoved) continue;
    if (const auto seen = seen_.find(lease.key); seen != seen_.end()) seen->second.suspected.reset();
    if (results[i].outcome == NoteOutcome::kCleared) {
      log::info("the signer has no nonce gap any more",
                {{"signer", lease.key.signer}, {"nodeId", chain_.node()}, {"fencingToken", lease.fencing_token}});
      free_again.push_back(lease.key.signer);
      continue;
    }
    const auto reason = results[i].reason.value_or(ReconcileReason::kGap);
    log::error("no nonces are assigned until an operator acts", {{"signer", lease.key.signer},
                                                                 {"chainId", lease.key.chain_id},
                                                                 {"nodeId", chain_.node()},
                                                                 {"fencingToken", lease.fencing_token},
                                                                 {"gapNonce", *notes[i].nonce},
                                                                 {"chainNonce", notes[i].signer.count},
                                                                 {"reason", kReconcileReasons.name(reason)},
                                                                 {"why", kReconcileReasons.meaning(reason)}});
  }
  if (free_again.empty()) co_return;
  chain_.wake_promoter(free_again);
  chain_.wake_submitter(free_again);
  chain_.wake_resubmitter();
}

}  // namespace fencepost::tx
