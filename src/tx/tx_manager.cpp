#include "tx/tx_manager.hpp"

#include "runtime/gather.hpp"
#include "runtime/on_loop.hpp"
#include "runtime/worker_set.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/signer_balances.hpp"
#include "tx/workers/backlog_gauges.hpp"
#include "tx/workers/confirmation_manager.hpp"
#include "tx/workers/nonce_keeper.hpp"
#include "tx/workers/promoter.hpp"
#include "tx/workers/receipt_checker.hpp"
#include "tx/workers/resubmitter.hpp"
#include "tx/workers/stuck_watcher.hpp"
#include "tx/workers/submitter.hpp"

namespace fencepost::tx {
namespace {

std::vector<std::int64_t> ids_of(const std::vector<ChainSetup>& chains) {
  std::vector<std::int64_t> ids;
  ids.reserve(chains.size());
  for (const auto& setup : chains) ids.push_back(setup.chain.id());
  return ids;
}

}  // namespace

// The workers of one chain, all on the chain's loop. A new worker is one line in the constructor.
class TxManager::ChainWork {
 public:
  ChainWork(const Parts& parts, const ChainSetup& setup, LeaseManager& leases, TxChangeSignal& changes,
            HashWaits& hashes)
      : context_{.evm_chain = setup.chain,
                 .home = setup.chain.home(),
                 .runtime = parts.runtime,
                 .database = parts.database,
                 .connector = setup.chain.connector(),
                 .follower = setup.chain.follower(),
                 .keys = parts.keys,
                 .leases = leases,
                 .changes = changes,
                 .hashes = hashes,
                 .metrics = parts.metrics,
                 .options = setup.options},
        nonces_(workers_.add<NonceKeeper>(context_)),
        receipts_(workers_.add<ReceiptChecker>(context_)),
        confirmations_(workers_.add<ConfirmationManager>(context_)) {
    workers_.add<BacklogGauges>(context_);
    context_.wake_receipts = [this] { receipts_.wake(); };
    context_.find_listing = [this](const std::string& tx_hash) { return receipts_.listing(tx_hash); };
    context_.on_mined = [this](std::int64_t block) { confirmations_.on_mined(block); };
    context_.wake_promoter = [&promoter = workers_.add<Promoter>(context_)](const SignerHint& hint) {
      promoter.wake(hint);
    };
    auto& submitter = workers_.add<Submitter>(context_);
    context_.wake_submitter = [&submitter](const SignerHint& hint) { submitter.wake(hint); };
    context_.submit = [&submitter](std::vector<DueSubmit> numbered) { submitter.add(std::move(numbered)); };
    context_.wake_resubmitter = [&resubmitter = workers_.add<Resubmitter>(context_)] { resubmitter.wake(); };
    context_.wake_stuck_watcher = [&watcher = workers_.add<StuckWatcher>(context_)] { watcher.wake(); };
    context_.follower.subscribe("tx", [this](const evm::ChainUpdate& update) { return on_update(update); });
  }

  ChainContext& context() { return context_; }

  // The methods below must be called on the chain's loop.
  awaitable<> on_taken(std::vector<SignerLease> taken) {
    confirmations_.on_taken();
    co_await nonces_.on_taken(std::move(taken));
  }
  awaitable<> start() {
    workers_.start();
    co_return;
  }
  // May interrupt a step anywhere. That is as safe as a crash.
  awaitable<> stop() { return workers_.stop(); }

 private:
  // Retract first, match next, count last, so that a transaction that moved to another block never counts in both.
  awaitable<> on_update(const evm::ChainUpdate& update) {
    if (update.reorged_to) {
      context_.sent.forget_all();
      co_await confirmations_.on_reorg(*update.reorged_to);
    }
    co_await receipts_.on_blocks(update.blocks);
    if (update.missed) receipts_.on_missed();
    confirmations_.wake();
  }

  ChainContext context_;
  WorkerSet workers_;
  NonceKeeper& nonces_;
  ReceiptChecker& receipts_;
  ConfirmationManager& confirmations_;
};

TxManager::TxManager(Parts parts, cluster::NodeIdentity identity, TxOptions options, LeaseOptions lease,
                     const std::vector<ChainSetup>& chains)
    : parts_(parts),
      hashes_(parts.runtime.executor(0), parts.database, options.rpc.max_waiting, parts.metrics),
      leases_(
          parts.runtime.executor(0), parts.database, std::move(identity), lease, ids_of(chains),
          [&keys = parts.keys](const SignerKey& key) { return keys.find(key.signer) != nullptr; }, parts.metrics),
      writer_(
          parts.runtime, parts.database, leases_, options.writer_lanes, options.writer_batch,
          [this](std::int64_t chain_id, std::vector<DueSubmit> numbered) {
            chains_.at(chain_id)->context().submit(std::move(numbered));
          },
          parts.metrics),
      leaders_(parts.runtime, options.forward_timeout) {
  std::map<std::int64_t, ChainContext*> contexts;
  for (const auto& setup : chains) {
    auto work = std::make_unique<ChainWork>(parts, setup, leases_, changes_, hashes_);
    leases_.on_taken([home = setup.chain.home(), work = work.get()](std::vector<SignerLease> taken) {
      return on_loop(home, [work, taken = std::move(taken)] { return work->on_taken(taken); });
    });
    contexts.emplace(setup.chain.id(), &work->context());
    chains_.emplace(setup.chain.id(), std::move(work));
  }
  service_ = std::make_unique<TxService>(options, parts.database, contexts, parts.keys, leases_, writer_, leaders_,
                                         changes_, parts.metrics);
  operators_ =
      std::make_unique<OperatorService>(parts.database, contexts, parts.keys, leases_, parts.ids, parts.metrics);
  rpc_ = std::make_unique<RpcService>(RpcService::Parts{.service = *service_,
                                                        .hashes = hashes_,
                                                        .database = parts.database,
                                                        .keys = parts.keys,
                                                        .ids = parts.ids,
                                                        .metrics = parts.metrics,
                                                        .chains = contexts},
                                      options.rpc);
  parts.listener.subscribe(
      std::string(kLeaseChannel), [this](std::string_view) { leases_.look_for_orphans(); },
      [this] { leases_.look_for_orphans(); });
}

TxManager::~TxManager() = default;

awaitable<> TxManager::join() {
  co_await cluster::heartbeat(parts_.database.pool(), leases_.identity());
}

awaitable<> TxManager::start() {
  writer_.start();
  hashes_.start();
  for (auto& [id, work] : chains_) {
    co_await on_loop(work->context().home, [one = work.get()] { return one->start(); });
  }
  leases_.start();
}

awaitable<> TxManager::stop(std::chrono::milliseconds limit) {
  co_await writer_.stop(limit / 2);
  for (auto& [id, work] : chains_) {
    co_await on_loop(work->context().home, [one = work.get()] { return one->stop(); });
  }
  co_await hashes_.stop();
  co_await leases_.stop();
}

std::vector<std::int64_t> TxManager::chain_ids() const {
  std::vector<std::int64_t> ids;
  ids.reserve(chains_.size());
  for (const auto& [id, work] : chains_) ids.push_back(id);
  return ids;
}

awaitable<std::map<SignerKey, Uint256>> TxManager::balances(std::vector<SignerKey> signers,
                                                            std::chrono::milliseconds limit) {
  std::map<std::int64_t, std::vector<std::string>> addresses;
  for (auto& key : signers) {
    if (chains_.contains(key.chain_id)) addresses[key.chain_id].push_back(std::move(key.signer));
  }
  std::vector<std::int64_t> ids;
  std::vector<awaitable<std::map<std::string, Uint256>>> asked;
  for (auto& [id, some] : addresses) {
    auto& context = chains_.at(id)->context();
    ids.push_back(id);
    asked.push_back(signer_balances(context.home, context.connector, std::move(some), limit));
  }
  const auto answers = co_await gather(std::move(asked));
  std::map<SignerKey, Uint256> out;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    for (const auto& [address, balance] : answers[i]) out.emplace(SignerKey{ids[i], address}, balance);
  }
  co_return out;
}

}  // namespace fencepost::tx
