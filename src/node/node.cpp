#include "node/node.hpp"

#include <atomic>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/uuid.hpp"
#include "evm/chain.hpp"
#include "evm/keys/key_ring.hpp"
#include "identity/api_key_store.hpp"
#include "identity/key_authenticator.hpp"
#include "identity/login_service.hpp"
#include "node/event_catalog.hpp"
#include "node/listeners.hpp"
#include "node/routes.hpp"
#include "node/timelock_flows.hpp"
#include "notify/notify_manager.hpp"
#include "notify/workers/flow_notifier.hpp"
#include "outbox/delivery/consumer_manager.hpp"
#include "outbox/event_log_keeper.hpp"
#include "outbox/feed/event_feed.hpp"
#include "outbox/nats/nats_sink.hpp"
#include "outbox/webhook/webhook_service.hpp"
#include "outbox/webhook/webhook_sink.hpp"
#include "pg/database.hpp"
#include "pg/error.hpp"
#include "pg/listener.hpp"
#include "pg/migrations.hpp"
#include "pg/statistics_keeper.hpp"
#include "runtime/child_process.hpp"
#include "runtime/gather.hpp"
#include "runtime/log.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"
#include "runtime/stop_sequence.hpp"
#include "runtime/worker.hpp"
#include "timelock/timelock_manager.hpp"
#include "transfer/transfer_manager.hpp"
#include "tx/tx_manager.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;

// The name and a new id, so that two processes never share an identity; fits application_name's 63 bytes.
std::string node_id(const NodeConfig& config) {
  return fmt::format("{:.50}/{:08x}", config.name, SystemRandom().next() & 0xffffffff);
}

pg::ConnectOptions connect_options(const Config& config, const std::string& id) {
  return {.dsn = config.database.dsn,
          .application_name = id,
          .connect_timeout = config.database.connect_timeout,
          .statement_timeout = config.database.statement_timeout};
}

pg::PoolOptions pool_options(const DatabaseConfig& config) {
  return {.shared_connections = config.shared_connections,
          .exclusive_connections = config.pool_size,
          .queue_limit = config.queue_limit,
          .acquire_timeout = config.acquire_timeout};
}

// Spread over the loops, in the order of the configuration.
std::vector<std::unique_ptr<evm::Chain>> make_chains(const Config& config, const evm::Chain::Parts& parts) {
  std::vector<std::unique_ptr<evm::Chain>> chains;
  for (const auto& chain : config.chains) {
    evm::ChainOptions options{.name = chain.name,
                              .chain_id = chain.chain_id,
                              .rpc_urls = chain.rpc_urls,
                              .submit_urls = chain.submit_urls,
                              .batch_size = chain.tuning.batch_size,
                              .poll_interval = chain.poll_interval,
                              .finality = chain.tuning.finality};
    const auto loop = chains.size() % parts.runtime.size();
    chains.push_back(std::make_unique<evm::Chain>(parts, loop, std::move(options)));
  }
  return chains;
}

std::vector<tx::ChainSetup> chain_setups(const Config& config, const std::vector<std::unique_ptr<evm::Chain>>& chains) {
  std::vector<tx::ChainSetup> setups;
  setups.reserve(chains.size());
  for (std::size_t i = 0; i < chains.size(); ++i) {
    setups.push_back({.chain = *chains[i], .options = chain_options(config, config.chains[i])});
  }
  return setups;
}

std::vector<timelock::ChainSetup> timelock_setups(const Config& config,
                                                  const std::vector<std::unique_ptr<evm::Chain>>& chains) {
  std::vector<timelock::ChainSetup> setups;
  setups.reserve(chains.size());
  for (std::size_t i = 0; i < chains.size(); ++i) {
    setups.push_back({.chain = *chains[i], .options = config.chains[i].tuning.scanner});
  }
  return setups;
}

std::map<std::int64_t, notify::ChainLabel> chain_labels(const Config& config) {
  std::map<std::int64_t, notify::ChainLabel> labels;
  for (const auto& chain : config.chains) labels[chain.chain_id] = {chain.name, chain.explorer_url};
  return labels;
}

class Node {
 public:
  Node(const Config& config, NodeHooks hooks)
      : config_(config),
        hooks_(std::move(hooks)),
        runtime_({.threads = config.runtime.threads, .cpu_threads = config.runtime.cpu_threads}),
        id_(node_id(config.node)),
        keys_(runtime_),
        database_(runtime_, connect_options(config, id_), pool_options(config.database), metrics_),
        listener_(runtime_.executor(0), database_.connector(),
                  {.poll_only = config.database.listen == ListenMode::kPollOnly}, metrics_),
        authenticator_(
            database_, clock_,
            {.requests_per_second = config.http.rate_limit_per_second, .burst = config.http.rate_limit_burst},
            metrics_),
        public_url_(config.http.public_url),
        callers_(database_, authenticator_, public_url_, config.login),
        key_uses_(
            runtime_.executor(0), {.name = "api_key_uses", .interval = 10s}, [this] { return save_key_uses(); },
            metrics_),
        statistics_(runtime_.executor(0), database_, "economy", metrics_),
        event_log_(runtime_.executor(0), database_, config.events.retention, metrics_),
        feed_(runtime_, database_, listener_, event_catalog(), {}, metrics_),
        consumers_({runtime_, database_, listener_, feed_, clock_, metrics_}, id_, {}),
        webhook_metrics_(metrics_),
        webhooks_({database_, feed_, clock_, random_, ids_, config.webhooks}),
        chains_(make_chains(config, {runtime_, database_, clock_, random_, metrics_})),
        login_({database_, clock_, random_, chains_, public_url_, authenticator_}, config.login),
        transactions_({.runtime = runtime_,
                       .database = database_,
                       .listener = listener_,
                       .keys = keys_,
                       .ids = ids_,
                       .metrics = metrics_},
                      {.node_id = id_, .advertise_url = config.node.advertise_url, .version = std::string(version())},
                      config.tx, config.lease, chain_setups(config, chains_)),
        timelocks_({.database = database_, .metrics = metrics_, .node_id = id_}, timelock_setups(config, chains_)),
        flows_(timelocks_.service()),
        mail_({.runtime = runtime_,
               .database = database_,
               .clock = clock_,
               .random = random_,
               .public_url = public_url_,
               .flows = flows_,
               .metrics = metrics_,
               .chains = chain_labels(config)},
              config.email),
        transfers_(runtime_, database_, listener_, config.transfer, metrics_) {
    if (config.nats.configured()) {
      nats_.emplace(config.nats, metrics_);
      consumers_.add_kind("nats", nats_->factory());
    }
    if (mail_.sends()) consumers_.add_kind(std::string(notify::kNotifierKind), mail_.factory());
    metrics_.gauge("build_info", "Always 1; the label says which version runs", {{"version", std::string(version())}})
        .Set(1);
    metrics_.before_scrape([&dropped = metrics_.counter("log_lines_dropped_total", "Lines lost to a full log queue")] {
      dropped.Increment(static_cast<double>(log::dropped()) - dropped.Value());
    });
    add_all_routes(router_, {.system = {database_, metrics_, serving_, metrics_route_of_api(config.metrics)},
                             .cluster = {database_, chains_, config.lease.renew_interval},
                             .login = {login_},
                             .events = {feed_, database_, callers_, metrics_},
                             .webhooks = {webhooks_},
                             .tx = {transactions_, database_, keys_, ids_},
                             .timelock = {timelocks_.service(), ids_, clock_},
                             .mail = {mail_},
                             .transfer = {transfers_.service(), database_, ids_}});
    consumers_.add_kind(std::string(outbox::kWebhookKind), [this](outbox::Claim claim) {
      return outbox::WebhookSink::open({database_, event_catalog(), clock_, config_.webhooks, webhook_metrics_},
                                       std::move(claim));
    });
    listeners_ = std::make_unique<Listeners>(runtime_, config, router_, &callers_, metrics_);
    listener_.subscribe(
        std::string(identity::kApiKeyChannel), [this](std::string_view) { authenticator_.forget_all(); },
        [this] { authenticator_.forget_all(); });
  }

  // Blocks while it opens key files: their key derivation is slow by design.
  Result<void> load_keys() {
    const auto& keystore = config_.keystore;
    if (auto added = keys_.add_dev_keys(keystore.dev_keys); !added) return added;
    if (!keystore.directory.empty()) {
      if (auto loaded = keys_.load_keystores(keystore.directory, keystore.password); !loaded) {
        return fail(loaded.error());
      }
    }
    if (keys_.size() > 0) log::info("keys are open", {{"signers", keys_.size()}});
    return {};
  }

  Result<void> run() {
    runtime_.start();
    const bool in_order = runtime_.run_on(0, live());
    if (!in_order) {
      // A part did not stop and may still use objects that we would destroy: exit at once. All state is in the
      // database.
      if (hooks_.before_abandoning) hooks_.before_abandoning();
      log::shutdown();
      ::_exit(EXIT_FAILURE);
    }
    runtime_.stop();
    return outcome_;
  }

 private:
  // Runs the node from start to stop, on loop 0. Returns false if stopping took too long.
  awaitable<bool> live() {
    asio::signal_set signals(runtime_.executor(0), SIGINT, SIGTERM, SIGHUP);
    const auto told_to_stop = std::make_shared<Completion<int>>(runtime_.executor(0));
    signals.async_wait([told_to_stop](boost::system::error_code ec, int signal) {
      if (!ec) told_to_stop->complete(signal);
    });

    try {
      outcome_ = co_await start(told_to_stop);
    } catch (const std::exception&) {
      outcome_ = fail(error_of(std::current_exception()));
    }
    if (outcome_) {
      co_await told_to_stop->wait();
      log::info("stopping", {{"signal", signal_name(told_to_stop->value())}});
    }
    serving_ = false;
    signals.cancel();
    signals.clear();
    ::signal(SIGINT, SIG_DFL);  // a second Ctrl-C ends the process at once
    ::signal(SIGTERM, SIG_DFL);
    // Parts stop in reverse order: requests end before the parts that they use.
    stops_.add("listeners", [this](auto left) { return listeners_->stop(left); });
    co_return co_await stops_.run(config_.runtime.stop_timeout);
  }

  // The server starts first, so that /livez and /readyz answer while the database is unreachable.
  awaitable<Result<void>> start(std::shared_ptr<Completion<int>> told_to_stop) {
    co_await database_.start();
    stops_.add("database", [this](auto left) { return database_.stop(left); });
    if (auto listening = listeners_->start(); !listening) co_return listening;
    public_url_.listens_at(config_.http.host, listeners_->port(), listeners_->scheme());

    if (auto prepared = co_await prepare_until_done(told_to_stop); !prepared) co_return prepared;
    if (told_to_stop->done()) co_return Result<void>{};
    listener_.start();
    stops_.add("listener", [this](auto) { return listener_.stop(); });
    key_uses_.start();
    stops_.add("api key uses", [this](auto) { return stop_key_uses(); });
    statistics_.start();
    stops_.add("statistics", [this](auto) { return statistics_.stop(); });
    event_log_.start();
    stops_.add("event log", [this](auto) { return event_log_.stop(); });
    feed_.start();
    stops_.add("event feed", [this](auto) { return feed_.stop(); });
    if (nats_) stops_.add("nats", [this](auto) { return nats_->stop(); });
    mail_.start();
    stops_.add("mail", [this](auto left) { return mail_.stop(left); });
    consumers_.start();
    stops_.add("event consumers", [this](auto left) { return consumers_.stop(left); });
    co_await for_all_chains(&evm::Chain::check_endpoints);
    co_await login_.prepare();  // from here on wallets log in, and contracts are asked
    co_await transactions_.start();
    stops_.add("transactions", [this](auto left) { return transactions_.stop(left); });
    co_await timelocks_.start();
    stops_.add("timelocks", [this](auto) { return timelocks_.stop(); });
    co_await for_all_chains(&evm::Chain::start);
    stops_.add("chains", [this](auto) { return for_all_chains(&evm::Chain::stop); });
    transfers_.start();
    stops_.add("transfers", [this](auto left) { return transfers_.stop(left); });
    serving_ = true;

    log::info("node is ready",
              {{"node", config_.node.name}, {"host", config_.http.host}, {"port", listeners_->port()}});
    if (hooks_.on_ready) hooks_.on_ready(listeners_->port());
    co_return Result<void>{};
  }

  // Prepares the database for the first worker. Idempotent.
  awaitable<Result<void>> prepare() {
    const auto applied = co_await pg::migrate(database_.connector(), pg::embedded_migrations());
    if (!applied) co_return fail(applied.error());
    if (auto ready = co_await event_log_.prepare(); !ready) co_return ready;
    co_await feed_.prepare();
    if (nats_) co_await outbox::add_consumer(database_.pool(), nats_->consumer(), feed_.newest());
    if (mail_.sends()) {
      co_await outbox::add_consumer(database_.pool(), std::string(notify::kNotifier), feed_.newest());
    }
    co_await mail_.prepare();
    if (hooks_.prepare) co_await hooks_.prepare(database_.pool());
    co_await transactions_.join();
    co_return Result<void>{};
  }

  // Retries while the database is unreachable; fails at once if the migration history does not match.
  awaitable<Result<void>> prepare_until_done(std::shared_ptr<Completion<int>> told_to_stop) {
    SystemRandom random;
    Backoff backoff({.initial = 200ms, .cap = 5s}, random);
    while (!told_to_stop->done()) {
      std::optional<Error> away;
      try {
        co_return co_await prepare();
      } catch (const pg::QueryError& e) {
        if (!pg::is_transient(e.sqlstate())) co_return fail(e.error());
        away = e.error();
      } catch (const Exception& e) {
        if (e.error().kind != ErrorKind::kUnavailable) co_return fail(e.error());
        away = e.error();
      }
      const auto delay = backoff.next();
      log::warn("waiting for the database", *away, {{"retryInMs", delay.count()}});
      co_await told_to_stop->wait(std::chrono::steady_clock::now() + delay);
    }
    co_return Result<void>{};
  }

  // All chains at once: one that does not answer delays no other.
  awaitable<> for_all_chains(awaitable<> (evm::Chain::*step)()) {
    std::vector<awaitable<>> steps;
    steps.reserve(chains_.size());
    for (const auto& chain : chains_) steps.push_back((*chain.*step)());
    co_await gather(std::move(steps));
  }

  awaitable<Worker::Next> save_key_uses() {
    co_await authenticator_.save_uses();
    co_return Worker::Next::kRest;
  }

  awaitable<> stop_key_uses() {
    co_await key_uses_.stop();
    co_await authenticator_.save_uses(std::chrono::seconds(1));
  }

  const Config& config_;
  NodeHooks hooks_;
  Metrics metrics_;
  SystemClock clock_;
  SystemRandom random_;
  UuidGenerator ids_{clock_, random_};
  std::atomic<bool> serving_{false};
  Result<void> outcome_;
  http::Router router_;
  Runtime runtime_;
  std::string id_;
  evm::KeyRing keys_;
  pg::Database database_;
  pg::Listener listener_;
  identity::KeyAuthenticator authenticator_;
  identity::PublicUrl public_url_;
  identity::CallerAuthenticator callers_;
  Worker key_uses_;
  pg::StatisticsKeeper statistics_;
  outbox::EventLogKeeper event_log_;
  outbox::EventFeed feed_;
  std::optional<outbox::NatsDelivery> nats_;
  outbox::ConsumerManager consumers_;
  outbox::WebhookMetrics webhook_metrics_;
  outbox::WebhookService webhooks_;
  std::vector<std::unique_ptr<evm::Chain>> chains_;
  identity::LoginService login_;
  tx::TxManager transactions_;
  timelock::TimelockManager timelocks_;
  TimelockFlows flows_;
  notify::NotifyManager mail_;
  transfer::TransferManager transfers_;
  std::unique_ptr<Listeners> listeners_;
  StopSequence stops_;
};

}  // namespace

Result<void> run_node(const Config& config, NodeHooks hooks) {
  ::signal(SIGPIPE, SIG_IGN);
  Node node(config, std::move(hooks));
  if (auto loaded = node.load_keys(); !loaded) return loaded;
  return node.run();
}

}  // namespace fencepost
