#include "tx/tx_manager.hpp"

#include "evm/block_follower.hpp"
#include "evm/evm_connector.hpp"
#include "evm/header_store.hpp"
#include "evm/json_rpc.hpp"
#include "http/client.hpp"
#include "runtime/gather.hpp"
#include "runtime/log.hpp"
#include "runtime/on_loop.hpp"
#include "tx/service/chain_context.hpp"
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

std::vector<std::string> reveal(const std::vector<Secret>& urls) {
  std::vector<std::string> out;
  for (const auto& url : urls) out.emplace_back(url.reveal());
  return out;
}

std::vector<std::int64_t> ids_of(const std::vector<ChainSetup>& chains) {
  std::vector<std::int64_t> ids;
  for (const auto& chain : chains) ids.push_back(chain.options.chain_id);
  return ids;
}

// Enough for the depth that makes final, with as much again for reorgs.
std::size_t window_for(const Finality& rule) {
  return std::max<std::size_t>(256, rule.kind == Finality::Kind::kDepth ? 2 * std::size_t{rule.depth} : 0);
}

}  // namespace

template <class Part>
awaitable<bool> stop_one(Part& part) {
  co_await part.stop();
  co_return true;
}

// One chain with its workers, all on one loop.
class TxManager::Chain {
 public:
  Chain(const Parts& parts, std::size_t loop, const ChainSetup& setup, LeaseManager& leases, TxWatch& watch)
      : home_(parts.runtime.executor(loop)),
        http_(home_, {}),
        rpc_(http_, reveal(setup.rpc_urls), {}, parts.clock, parts.random, parts.metrics),
        connector_(rpc_, setup.options.chain_id),
        headers_(parts.database.pool_of(loop)),
        follower_(home_, connector_, headers_, parts.clock,
                  {.poll_interval = setup.poll_interval, .window = window_for(setup.options.confirmations.required)},
                  parts.metrics),
        context_{.home = home_,
                 .runtime = parts.runtime,
                 .database = parts.database,
                 .connector = connector_,
                 .follower = follower_,
                 .keys = parts.keys,
                 .leases = leases,
                 .watch = watch,
                 .metrics = parts.metrics,
                 .options = setup.options,
                 .wake_submitter = [this] { submitter_.wake(); },
                 .wake_promoter = [this] { promoter_.wake(); },
                 .wake_resubmitter = [this] { resubmitter_.wake(); },
                 .wake_receipts = [this] { receipts_.wake(); },
                 .wake_stuck_watcher = [this] { stuck_.wake(); }},
        nonces_(context_),
        promoter_(context_),
        submitter_(context_),
        resubmitter_(context_),
        receipts_(context_),
        confirmations_(context_),
        stuck_(context_),
        gauges_(context_) {
    follower_.subscribe([this](const evm::ChainUpdate& update) { return on_update(update); });
  }

  ChainContext& context() { return context_; }

  awaitable<> on_taken(std::vector<SignerLease> taken) {
    confirmations_.on_taken();
    co_await nonces_.on_taken(std::move(taken));
  }

  // On this chain's loop, both.
  awaitable<> start() {
    if (auto checked = co_await rpc_.check_chain_id(static_cast<std::uint64_t>(context_.chain_id())); !checked) {
      log::error("the chain is not as configured", checked.error(), {{"chain", context_.options.name}});
    }
    nonces_.start();
    promoter_.start();
    submitter_.start();
    resubmitter_.start();
    receipts_.start();
    confirmations_.start();
    stuck_.start();
    gauges_.start();
    follower_.start();
  }

  // All at once: whatever one is in the middle of may be cut off anywhere, as a crash would.
  awaitable<> stop() {
    std::vector<awaitable<bool>> stops;
    stops.push_back(stop_one(follower_));
    stops.push_back(stop_one(gauges_));
    stops.push_back(stop_one(stuck_));
    stops.push_back(stop_one(confirmations_));
    stops.push_back(stop_one(receipts_));
    stops.push_back(stop_one(resubmitter_));
    stops.push_back(stop_one(submitter_));
    stops.push_back(stop_one(promoter_));
    stops.push_back(stop_one(nonces_));
    co_await gather(std::move(stops));
  }

  awaitable<ChainStatus> status() {
    ChainStatus status{.chain_id = context_.chain_id(),
                       .name = context_.options.name,
                       .head = std::nullopt,
                       .synced = follower_.synced(),
                       .required = context_.options.confirmations.required,
                       .endpoints = {}};
    if (const auto* head = follower_.window().head()) status.head = *head;
    for (std::size_t i = 0; i < connector_.endpoint_count(); ++i) {
      status.endpoints.push_back(connector_.endpoint_status(i));
    }
    co_return status;
  }

 private:
  // Withdrawn first, matched then, counted last: so a transaction that moved to another block is never on both.
  awaitable<> on_update(const evm::ChainUpdate& update) {
    if (update.reorged_to) co_await confirmations_.on_reorg(*update.reorged_to);
    co_await receipts_.on_blocks(update.blocks);
    confirmations_.wake();
  }

  Executor home_;
  http::Client http_;
  evm::JsonRpcClient rpc_;
  evm::EvmConnector connector_;
  evm::PgHeaderStore headers_;
  evm::BlockFollower follower_;
  ChainContext context_;
  NonceKeeper nonces_;
  Promoter promoter_;
  Submitter submitter_;
  Resubmitter resubmitter_;
  ReceiptChecker receipts_;
  ConfirmationManager confirmations_;
  StuckWatcher stuck_;
  BacklogGauges gauges_;
};

TxManager::TxManager(Parts parts, NodeIdentity identity, TxOptions options, LeaseOptions lease,
                     std::vector<ChainSetup> chains)
    : parts_(parts),
      leases_(
          parts.runtime.executor(0), parts.database, std::move(identity), lease, ids_of(chains),
          [&keys = parts.keys](const SignerKey& key) { return keys.find(key.signer) != nullptr; }, parts.metrics),
      writer_(
          parts.runtime, parts.database, leases_, options.writer_lanes, options.writer_batch,
          [this](std::int64_t chain_id) { chains_.at(chain_id)->context().wake_submitter(); }, parts.metrics),
      leaders_(parts.runtime, options.forward_timeout) {
  std::map<std::int64_t, ChainContext*> contexts;
  for (const auto& setup : chains) {
    const auto loop = chains_.size() % parts.runtime.size();
    auto chain = std::make_unique<Chain>(parts, loop, setup, leases_, watch_);
    leases_.on_taken([home = parts.runtime.executor(loop), chain = chain.get()](std::vector<SignerLease> taken) {
      return on_loop(home, [chain, taken = std::move(taken)] { return chain->on_taken(taken); });
    });
    contexts.emplace(setup.options.chain_id, &chain->context());
    chains_.emplace(setup.options.chain_id, std::move(chain));
  }
  service_ = std::make_unique<TxService>(options, parts.database, contexts, parts.keys, leases_, writer_, leaders_,
                                         watch_, parts.metrics);
  operators_ = std::make_unique<OperatorService>(*service_, parts.database, contexts, parts.keys, leases_, parts.ids,
                                                 parts.metrics);
  parts.listener.subscribe(
      std::string(kLeaseChannel), [this](std::string_view) { leases_.look_for_orphans(); },
      [this] { leases_.look_for_orphans(); });
}

TxManager::~TxManager() = default;

awaitable<> TxManager::join() {
  co_await heartbeat(parts_.database.pool(), leases_.identity().node_id, leases_.identity().advertise_url,
                     leases_.identity().version);
}

awaitable<> TxManager::start() {
  writer_.start();
  for (auto& [id, chain] : chains_) {
    co_await on_loop(chain->context().home, [one = chain.get()] { return one->start(); });
  }
  leases_.start();
}

awaitable<> TxManager::stop(std::chrono::milliseconds limit) {
  co_await writer_.stop(limit / 2);
  for (auto& [id, chain] : chains_) {
    co_await on_loop(chain->context().home, [one = chain.get()] { return one->stop(); });
  }
  co_await leases_.stop();
}

awaitable<std::vector<ChainStatus>> TxManager::chains() {
  std::vector<ChainStatus> out;
  for (auto& [id, chain] : chains_) {
    out.push_back(co_await on_loop(chain->context().home, [one = chain.get()] { return one->status(); }));
  }
  co_return out;
}

}  // namespace fencepost::tx
