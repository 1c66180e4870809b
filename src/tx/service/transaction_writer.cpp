#include "tx/service/transaction_writer.hpp"

#include <map>
#include <set>

#include "runtime/log.hpp"
#include "runtime/test_point.hpp"

namespace fencepost::tx {

TransactionWriter::TransactionWriter(Runtime& runtime, pg::Database& database, LeaseManager& leases, std::size_t lanes,
                                     std::size_t max_batch, OnCreated on_created, const ChainNames& chains,
                                     Metrics& metrics)
    : database_(database),
      leases_(leases),
      on_created_(std::move(on_created)),
      commits_total_(metrics, chains, "tx_create_commits_total", "Commits that created transactions of the chain"),
      creates_(
          runtime, {.name = "tx_create", .lanes = lanes, .max_batch = max_batch},
          [this](std::span<const PendingCreate> items) { return write(items); }, metrics) {}

awaitable<CreateResult> TransactionWriter::create(PendingCreate create) {
  const auto lane = create.tx.key.signer;
  co_return co_await creates_.submit(lane, std::move(create));
}

awaitable<std::vector<CreateResult>> TransactionWriter::write(std::span<const PendingCreate> items) {
  std::vector<CreateResult> out(items.size());
  std::map<SignerKey, Allotment> allotments;
  std::vector<NewTx> batch;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& key = items[i].tx.key;
    auto known = allotments.find(key);
    if (known == allotments.end()) {
      const auto lease = leases_.held(key);
      if (!lease) continue;  // the result stays kFenced, the default of CreateResult
      known = allotments.emplace(key, Allotment{*lease, items[i].max_in_flight}).first;
    }
    batch.push_back(items[i].tx);
    places.push_back(i);
  }
  if (batch.empty()) co_return out;
  std::vector<Allotment> held;
  held.reserve(allotments.size());
  for (const auto& [key, allotment] : allotments) held.push_back(allotment);

  test_point("create.ready");
  auto results = co_await create_batch(database_.pool(), leases_.identity().node_id, held, std::move(batch));
  test_point("create.committed");
  std::set<std::int64_t> chains;
  for (const auto& [key, allotment] : allotments) chains.insert(key.chain_id);
  for (const auto chain_id : chains) commits_total_.add(chain_id);
  std::set<SignerKey> fenced;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& key = items[places[i]].tx.key;
    if (results[i].outcome == CreateOutcome::kFenced && fenced.insert(key).second) {
      leases_.lost(allotments[key].lease);
    }
    out[places[i]] = std::move(results[i]);
  }
  announce(items, out);
  co_return out;
}

void TransactionWriter::announce(std::span<const PendingCreate> items, const std::vector<CreateResult>& results) {
  std::map<std::int64_t, std::vector<DueSubmit>> numbered;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].outcome != CreateOutcome::kCreated) continue;
    const auto& tx = *results[i].tx;
    log::info("transaction accepted", {{"txId", tx.tx_id.to_string()},
                                       {"signer", tx.key.signer},
                                       {"nodeId", leases_.identity().node_id},
                                       {"fencingToken", *tx.fencing_token},
                                       {"nonce", tx.nonce.value_or(-1)}});
    if (!tx.nonce) continue;
    numbered[tx.key.chain_id].push_back({.lease = {tx.key, *tx.fencing_token},
                                         .tx_id = tx.tx_id,
                                         .nonce = *tx.nonce,
                                         .payload = items[i].tx.payload,
                                         .gas_limit = tx.gas_limit});
  }
  for (auto& [chain_id, some] : numbered) on_created_(chain_id, std::move(some));
}

}  // namespace fencepost::tx
