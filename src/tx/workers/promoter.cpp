#include "tx/workers/promoter.hpp"

#include <unordered_map>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/store/create_store.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kSignersPerCommit = 256;

}  // namespace

Promoter::Promoter(ChainContext& chain)
    : chain_(chain),
      worker_(
          chain.home,
          {.name = "tx_promoter",
           .chain = chain.evm_chain.name(),
           .interval = std::chrono::seconds(1),
           .stop_grace = ChainContext::kStopGrace},
          [this] { return promote_waiting(); }, chain.metrics) {}

awaitable<Worker::Next> Promoter::promote_waiting() {
  std::unordered_map<SignerKey, Allotment> by_key;
  std::vector<Allotment> held;
  for (const auto& lease : chain_.leases.held_on(chain_.chain_id())) {
    held.push_back({lease, chain_.options.window_of(lease.key.signer)});
    by_key.emplace(lease.key, held.back());
  }
  if (held.empty()) co_return Worker::Next::kRest;

  const auto waiting = co_await signers_waiting(chain_.database.pool(), std::move(held));
  std::int64_t promoted = 0;
  for (std::size_t begin = 0; begin < waiting.size(); begin += kSignersPerCommit) {
    std::vector<Allotment> allotments;
    for (auto i = begin; i < std::min(begin + kSignersPerCommit, waiting.size()); ++i) {
      allotments.push_back(by_key.at(waiting[i]));
    }
    for (const auto& one : co_await promote(chain_.database.pool(), chain_.node(), std::move(allotments))) {
      ++promoted;
      log::info("nonce assigned", {{"txId", one.tx_id.to_string()},
                                   {"signer", one.key.signer},
                                   {"nodeId", chain_.node()},
                                   {"fencingToken", by_key.at(one.key).lease.fencing_token},
                                   {"nonce", one.nonce}});
    }
    test_point("promoter.committed");
  }
  if (promoted > 0) chain_.wake_submitter();
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::tx
