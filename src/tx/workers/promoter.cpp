#include "tx/workers/promoter.hpp"

#include <unordered_map>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/store/create_store.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kSignersPerCommit = 256;
constexpr std::chrono::seconds kPromoteInterval{1};

}  // namespace

Promoter::Promoter(ChainContext& chain)
    : chain_(chain),
      hints_(kPromoteInterval),
      worker_(
          chain.home,
          {.name = "tx_promoter",
           .chain = chain.evm_chain.name(),
           .interval = kPromoteInterval,
           .stop_grace = ChainContext::kStopGrace},
          [this] { return promote_waiting(); }, chain.metrics) {}

// A transaction that cannot be signed gets no nonce.
std::vector<SignerLease> Promoter::leases_of(const SignerHint& hint) const {
  std::vector<SignerLease> out;
  if (hint) {
    for (const auto& signer : *hint) {
      if (const auto lease = chain_.leases.held({chain_.chain_id(), signer})) out.push_back(*lease);
    }
  } else {
    out = chain_.leases.held_on(chain_.chain_id());
  }
  std::erase_if(out, [this](const SignerLease& lease) { return !chain_.leases.can_sign(lease.key); });
  return out;
}

awaitable<Worker::Next> Promoter::promote_waiting() {
  const auto hint = hints_.take();
  std::unordered_map<SignerKey, Allotment> by_key;
  std::vector<Allotment> held;
  for (const auto& lease : leases_of(hint)) {
    held.push_back({lease, chain_.options.window_of(lease.key.signer)});
    by_key.emplace(lease.key, held.back());
  }
  if (held.empty()) co_return Worker::Next::kRest;

  const auto waiting = co_await signers_waiting(chain_.database.pool(), std::move(held));
  std::vector<DueSubmit> numbered;
  for (std::size_t begin = 0; begin < waiting.size(); begin += kSignersPerCommit) {
    std::vector<Allotment> allotments;
    for (auto i = begin; i < std::min(begin + kSignersPerCommit, waiting.size()); ++i) {
      allotments.push_back(by_key.at(waiting[i]));
    }
    for (auto& one : co_await promote(chain_.database.pool(), chain_.node(), std::move(allotments))) {
      const auto& lease = by_key.at(one.key).lease;
      log::info("nonce assigned", {{"txId", one.tx_id.to_string()},
                                   {"signer", one.key.signer},
                                   {"nodeId", chain_.node()},
                                   {"fencingToken", lease.fencing_token},
                                   {"nonce", one.nonce}});
      numbered.push_back({.lease = lease,
                          .tx_id = one.tx_id,
                          .nonce = one.nonce,
                          .payload = std::move(one.payload),
                          .gas_limit = one.gas_limit});
    }
    test_point("promoter.committed");
  }
  if (!numbered.empty()) chain_.submit(std::move(numbered));
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::tx
