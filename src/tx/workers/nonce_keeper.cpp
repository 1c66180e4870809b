#include "tx/workers/nonce_keeper.hpp"

#include <algorithm>
#include <unordered_map>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kSignersAtOnce = 200;

}  // namespace

NonceKeeper::NonceKeeper(ChainContext& chain)
    : chain_(chain),
      worker_(
          chain.home,
          {.name = "tx_nonce_keeper",
           .chain = chain.evm_chain.name(),
           .interval = std::chrono::seconds(1),
           .stop_grace = ChainContext::kStopGrace},
          [this] { return follow(); }, chain.metrics) {
  for (const auto& row : kReconcileReasons) waiting_gauge(row.value);
}

Metrics::Gauge& NonceKeeper::waiting_gauge(ReconcileReason reason) {
  return chain_.metrics.gauge(
      "signer_needs_reconcile", "Signers that this node leads and that wait for an operator",
      {{"chain", chain_.evm_chain.name()}, {"reason", std::string(kReconcileReasons.name(reason))}});
}

awaitable<> NonceKeeper::on_taken(std::vector<SignerLease> leases) {
  std::erase_if(leases, [&](const SignerLease& lease) { return lease.key.chain_id != chain_.chain_id(); });
  // Compare existing cursors now, too, unless chain queries are disabled: the database may have been restored from an
  // old backup.
  if (!chain_.options.nonce.chain_query_enabled) keep_due(leases, co_await cursors_of(leases));
  co_await observe(std::move(leases));
}

awaitable<Worker::Next> NonceKeeper::follow() {
  auto leases = chain_.leases.held_on(chain_.chain_id());
  const auto cursors = leases.empty() ? std::vector<Cursor>() : co_await cursors_of(leases);
  for (const auto& row : kReconcileReasons) {
    const auto waiting = std::ranges::count(cursors, std::optional(row.value), &Cursor::reason);
    waiting_gauge(row.value).Set(static_cast<double>(waiting));
  }
  if (leases.empty()) co_return Worker::Next::kRest;
  keep_due(leases, cursors);
  co_await observe(std::move(leases));
  co_return Worker::Next::kRest;
}

awaitable<std::vector<Cursor>> NonceKeeper::cursors_of(std::vector<SignerLease> leases) {
  return read_cursors(chain_.database.pool(), std::move(leases), chain_.options.nonce.nonce_state_timeout);
}

// Removes the leases whose nonce the chain need not be asked for now.
void NonceKeeper::keep_due(std::vector<SignerLease>& leases, const std::vector<Cursor>& cursors) const {
  std::unordered_map<SignerKey, const Cursor*> by_key;
  for (const auto& cursor : cursors) by_key.emplace(cursor.key, &cursor);
  std::erase_if(leases, [&](const SignerLease& lease) {
    const auto it = by_key.find(lease.key);
    if (it == by_key.end()) return true;
    const bool due =
        !it->second->next_nonce || (chain_.options.nonce.chain_query_enabled && it->second->chain_nonce_is_old);
    return !due;
  });
}

awaitable<> NonceKeeper::observe(std::vector<SignerLease> leases) {
  const auto tag =
      chain_.options.nonce.chain_query_mode == NonceQuery::kPending ? evm::NonceTag::kPending : evm::NonceTag::kLatest;
  for (std::size_t begin = 0; begin < leases.size(); begin += kSignersAtOnce) {
    const auto end = std::min(begin + kSignersAtOnce, leases.size());
    std::vector<std::string> addresses;
    for (auto i = begin; i < end; ++i) addresses.push_back(leases[i].key.signer);
    const auto nonces = co_await chain_.chain_nonces(std::move(addresses), tag);
    std::vector<ChainNonce> observed;
    for (auto i = begin; i < end; ++i) {
      const auto& nonce = nonces[i - begin];
      if (nonce) {
        observed.push_back({leases[i], *nonce, chain_.options.is_shared(leases[i].key.signer)});
      } else {
        log::warn("the chain did not return a signer's nonce", nonce.error(), {{"signer", leases[i].key.signer}});
      }
    }
    const auto results = co_await observe_chain_nonces(chain_.database.pool(), chain_.node(), observed);
    test_point("nonce_keeper.committed");
    for (std::size_t i = 0; i < results.size(); ++i) note(observed[i], results[i]);
  }
}

void NonceKeeper::note(const ChainNonce& seen, const CursorResult& result) {
  const auto& signer = seen.lease.key.signer;
  switch (result.outcome) {
    case CursorOutcome::kFenced:
      chain_.leases.lost(seen.lease);
      return;
    case CursorOutcome::kUnchanged:
      return;
    case CursorOutcome::kSeeded:
      log::info("nonce cursor seeded from the chain", {{"signer", signer},
                                                       {"nodeId", chain_.node()},
                                                       {"fencingToken", seen.lease.fencing_token},
                                                       {"nextNonce", result.next_nonce}});
      chain_.wake_promoter(std::vector{signer});
      return;
    case CursorOutcome::kAdvanced:
      log::info("another sender used a shared signer", {{"signer", signer},
                                                        {"nodeId", chain_.node()},
                                                        {"fencingToken", seen.lease.fencing_token},
                                                        {"nextNonce", result.next_nonce}});
      return;
    case CursorOutcome::kMismatch:
      log::error(
          "the chain's nonce is above the cursor: no nonces are assigned until an operator calls accept-reconcile",
          {{"signer", signer},
           {"chainId", seen.lease.key.chain_id},
           {"chainNonce", seen.nonce},
           {"nextNonce", result.next_nonce}});
      return;
  }
}

}  // namespace fencepost::tx
