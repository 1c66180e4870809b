#include "tx/tx_manager.hpp"

#include <limits>

#include "runtime/gather.hpp"
#include "runtime/log.hpp"
#include "runtime/on_loop.hpp"
#include "runtime/worker_set.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/signer_balances.hpp"
#include "tx/workers/backlog_gauges.hpp"
#include "tx/workers/confirmation_manager.hpp"
#include "tx/workers/gap_watcher.hpp"
#include "tx/workers/nonce_keeper.hpp"
#include "tx/workers/outage_recovery.hpp"
#include "tx/workers/promoter.hpp"
#include "tx/workers/receipt_checker.hpp"
#include "tx/workers/resubmitter.hpp"
#include "tx/workers/stuck_watcher.hpp"
#include "tx/workers/submitter.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kHeadersToLearnFrom = 256;
constexpr std::chrono::milliseconds kLeastFarewell{100};

std::vector<std::int64_t> ids_of(const std::vector<ChainSetup>& chains) {
  std::vector<std::int64_t> ids;
  ids.reserve(chains.size());
  for (const auto& setup : chains) ids.push_back(setup.chain.id());
  return ids;
}

ChainNames names_of(const std::vector<ChainSetup>& chains) {
  ChainNames names;
  for (const auto& setup : chains) names[setup.chain.id()] = setup.chain.name();
  return names;
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
    context_.expect_receipt = [this](const std::string& tx_hash, evm::Listing listing) {
      receipts_.expect(tx_hash, std::move(listing));
    };
    context_.on_mined = [this](std::int64_t block) { confirmations_.on_mined(block); };
    context_.wake_promoter = [&promoter = workers_.add<Promoter>(context_)](const SignerHint& hint) {
      promoter.wake(hint);
    };
    auto& submitter = workers_.add<Submitter>(context_);
    context_.wake_submitter = [&submitter](const SignerHint& hint) { submitter.wake(hint); };
    context_.submit = [&submitter](std::vector<DueSubmit> numbered) { submitter.add(std::move(numbered)); };
    context_.wake_resubmitter = [&resubmitter = workers_.add<Resubmitter>(context_)] { resubmitter.wake(); };
    context_.look_for_gaps = [&gaps = workers_.add<GapWatcher>(context_)] { gaps.look_now(); };
    context_.wake_stuck_watcher = [&watcher = workers_.add<StuckWatcher>(context_)] { watcher.wake(); };
    setup.chain.endpoints().on_change([this, &leases, &recovery = workers_.add<OutageRecovery>(context_)](
                                          bool usable, std::chrono::milliseconds lasted) {
      leases.set_chain_usable(context_.chain_id(), usable);
      if (usable) recovery.on_usable(lasted);
    });
    context_.follower.subscribe("tx", [this](const evm::ChainUpdate& update) { return on_update(update); });
  }

  ChainContext& context() { return context_; }

  // The methods below must be called on the chain's loop.
  awaitable<> on_taken(std::vector<SignerLease> taken) {
    confirmations_.on_taken();
    co_await nonces_.on_taken(std::move(taken));
  }
  awaitable<> start() {
    const auto stored = co_await context_.evm_chain.headers().recent(context_.chain_id(), 0, kHeadersToLearnFrom);
    context_.fee_kind.learn(stored);
    workers_.start();
  }
  // May interrupt a step anywhere. That is as safe as a crash.
  awaitable<> stop() { return workers_.stop(); }

 private:
  // Retract first, match next, count last, so that a transaction that moved to another block never counts in both.
  awaitable<> on_update(const evm::ChainUpdate& update) {
    if (update.reorged_to) {
      context_.sent.forget_all();
      co_await confirmations_.on_reorg(*update.reorged_to);
      context_.look_for_gaps();
    }
    if (!update.blocks.empty()) see_head(update.blocks.back().header);
    co_await receipts_.on_blocks(update.blocks);
    if (update.missed) {
      receipts_.on_missed();
      confirmations_.on_missed();
    }
    confirmations_.wake();
  }

  void see_head(const evm::BlockHeader& head) {
    context_.fee_kind.see(head);
    if (!head.gas_limit || *head.gas_limit > std::numeric_limits<std::int64_t>::max()) return;
    context_.block_gas_limit.store(static_cast<std::int64_t>(*head.gas_limit), std::memory_order_relaxed);
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
      leases_(parts.runtime.executor(0), parts.database, std::move(identity), lease, names_of(chains),
              {.has = [&keys = parts.keys](const std::string& signer) { return keys.find(signer) != nullptr; },
               .all = [&keys = parts.keys] { return keys.addresses(); }},
              parts.metrics),
      watch_(parts.runtime.executor(0), parts.database, lease.times, parts.metrics),
      unled_(parts.runtime.executor(0), parts.database, ids_of(chains), cluster::longest_silence(lease.renew_interval),
             parts.metrics),
      writer_(
          parts.runtime, parts.database, leases_, options.writer_lanes, options.writer_batch,
          [this](std::int64_t chain_id, std::vector<DueSubmit> numbered) {
            chains_.at(chain_id)->context().submit(std::move(numbered));
          },
          names_of(chains), parts.metrics),
      leaders_(parts.runtime) {
  std::map<std::int64_t, ChainContext*> contexts;
  for (const auto& setup : chains) {
    auto work = std::make_unique<ChainWork>(parts, setup, leases_, changes_, hashes_);
    leases_.on_taken([home = setup.chain.home(), work = work.get()](std::vector<SignerLease> taken) {
      return on_loop(home, [work, taken = std::move(taken)] { return work->on_taken(taken); });
    });
    contexts.emplace(setup.chain.id(), &work->context());
    chains_.emplace(setup.chain.id(), std::move(work));
  }
  service_ = std::make_unique<TxService>(options, parts.database, contexts, parts.keys, leases_, watch_, writer_,
                                         leaders_, changes_, parts.metrics);
  operators_ = std::make_unique<OperatorService>(options, parts.database, contexts, parts.keys, leases_, watch_,
                                                 parts.ids, parts.metrics);
  for (auto& [id, chain] : contexts) {
    chain->cancel_rejected = [this](Uuid tx_id, std::string why) { return cancel_rejected(tx_id, std::move(why)); };
  }
  rpc_ = std::make_unique<RpcService>(RpcService::Parts{.service = *service_,
                                                        .hashes = hashes_,
                                                        .database = parts.database,
                                                        .keys = parts.keys,
                                                        .ids = parts.ids,
                                                        .metrics = parts.metrics,
                                                        .chains = contexts},
                                      options.rpc);
  parts.listener.subscribe(
      std::string(kLeaseChannel),
      [this](std::string_view) {
        leases_.look_for_orphans();
        watch_.look_now();
      },
      [this] { leases_.look_for_orphans(); });
}

TxManager::~TxManager() = default;

awaitable<> TxManager::cancel_rejected(Uuid tx_id, std::string why) {
  Operator who{.actor = "fencepost", .reason = "fees.fill_rejected: " + why.substr(0, 400)};
  const auto cancelled = co_await operators_->cancel(tx_id, std::move(who));
  if (cancelled) co_return;
  log::warn("a rejected transaction cannot be cancelled", cancelled.error(), {{"txId", tx_id.to_string()}});
}

awaitable<> TxManager::join() {
  co_await leases_.register_node(parts_.database.pool());
}

awaitable<> TxManager::start() {
  writer_.start();
  hashes_.start();
  watch_.start();
  unled_.start();
  for (auto& [id, work] : chains_) {
    co_await on_loop(work->context().home, [one = work.get()] { return one->start(); });
  }
  leases_.start();
}

awaitable<> TxManager::stop(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  co_await writer_.stop(limit / 2);
  for (auto& [id, work] : chains_) {
    co_await on_loop(work->context().home, [one = work.get()] { return one->stop(); });
  }
  co_await hashes_.stop();
  co_await watch_.stop();
  co_await unled_.stop();
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  co_await leases_.stop(std::max(left, kLeastFarewell));
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
