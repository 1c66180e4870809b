#include "dev/up.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>

#include "evm/dev_accounts.hpp"
#include "node/node.hpp"
#include "node/system_routes.hpp"
#include "pg/embedded_cluster.hpp"
#include "runtime/log.hpp"
#include "runtime/private_file.hpp"

#include "config/command_config.hpp"
#include "dev/dev_chain.hpp"
#include "dev/dev_key.hpp"
#include "dev/up_json.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// "· starting PostgreSQL … 1.2 s": shows that something is going on, and for how long it went on.
class Step {
 public:
  explicit Step(std::string_view what) : start_(std::chrono::steady_clock::now()) {
    fmt::print(stderr, "· {} … ", what);
    std::fflush(stderr);
  }
  ~Step() {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
    if (!failed_) fmt::print(stderr, "{:.1f} s\n", took.count());
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  void fail() {
    failed_ = true;
    fmt::print(stderr, "failed\n");
  }

 private:
  std::chrono::steady_clock::time_point start_;
  bool failed_ = false;
};

// What a person or a script needs to use what is up.
struct Facts {
  std::string url;
  Secret api_key;
  std::string rpc_url;
  std::int64_t chain_id = 0;
  std::vector<std::string> signers;
  std::string dsn;
  fs::path data_dir;
  fs::path cluster_dir;
};

// One that works from here, whatever we listen on.
std::string url_of(const std::string& host, std::uint16_t port) {
  if (host == "0.0.0.0") return fmt::format("http://127.0.0.1:{}", port);
  if (host == "::") return fmt::format("http://[::1]:{}", port);
  return fmt::format(fmt::runtime(host.find(':') == std::string::npos ? "http://{}:{}" : "http://[{}]:{}"), host, port);
}

Result<fs::path> make_data_dir(const fs::path& wanted) {
  std::error_code ec;
  fs::create_directories(wanted, ec);
  const auto absolute = fs::canonical(wanted, ec);
  if (ec) return fail(invalid("data_dir_unusable", fmt::format("cannot use {}: {}", wanted.string(), ec.message())));
  return absolute;
}

std::string welcome(const Facts& facts) {
  const auto key = facts.api_key.reveal();
  std::string out = fmt::format("\nFencepost {} is up.\n\n", version());
  out += fmt::format("  API       {}   (what it can do: {}/openapi.json)\n", facts.url, facts.url);
  out += fmt::format("  API key   {}\n", key);
  if (facts.signers.empty()) {
    out += fmt::format("  Chain     chain id {}, as configured\n", facts.chain_id);
  } else {
    out += fmt::format("  Chain     {}, chain id {}: a block every second, {} funded signers\n", facts.rpc_url,
                       facts.chain_id, facts.signers.size());
  }
  out += fmt::format("  Database  psql '{}'\n", facts.dsn);
  const auto relative = facts.cluster_dir.lexically_relative(facts.data_dir);
  const bool apart = relative.empty() || *relative.begin() == "..";
  out += fmt::format("  Data      {}{}\n", facts.data_dir.string(),
                     apart ? fmt::format(" and {}", facts.cluster_dir.string()) : "");
  out += fmt::format("            (delete {} to start afresh; the log is fencepost.log)\n\n", apart ? "both" : "it");
  out += fmt::format("Try:\n  curl -H 'Authorization: Bearer {}' {}/api/v1/whoami\n", key, facts.url);
  if (!facts.signers.empty()) {
    out += fmt::format("  fencepost tx send --data-dir {} --signer {} --to {} --value 1 --wait confirmed\n",
                       facts.data_dir.string(), facts.signers[0], facts.signers[1]);
  }
  out += '\n';
  out += "Ctrl-C stops all of it; the data stays.\n";
  return out;
}

std::string up_json(const Facts& facts) {
  const json::object out{{"url", facts.url},
                         {"apiKey", std::string(facts.api_key.reveal())},
                         {"rpcUrl", facts.rpc_url},
                         {"chainId", facts.chain_id},
                         {"signers", json::array(facts.signers.begin(), facts.signers.end())},
                         {"dsn", facts.dsn},
                         {"pid", static_cast<std::int64_t>(::getpid())}};
  return json::serialize(out) + "\n";
}

// Says that we are up, as long as we are.
class Announcement {
 public:
  explicit Announcement(const fs::path& data_dir) : file_(up_json_file(data_dir)) { withdraw(); }
  ~Announcement() { withdraw(); }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

  void publish(const Facts& facts) {
    if (const auto written = write_private_file(file_, up_json(facts)); !written) throw Exception(written.error());
    fmt::print("{}", welcome(facts));
    std::fflush(stdout);
  }

  void withdraw() {
    std::error_code gone;
    fs::remove(file_, gone);
  }

 private:
  fs::path file_;
};

// The flags of `up`, and what it has started, as configuration on top of the user's own.
CommandConfig with_parts(const UpOptions& options, const std::string& dsn, const DevChain* chain,
                         const fs::path& data_dir) {
  CommandConfig all{.file = options.config_file};
  auto& overrides = all.overrides;
  overrides.push_back({"up", "database.dsn", dsn});
  if (options.port) overrides.push_back({"--port", "http.port", std::to_string(*options.port)});
  overrides.push_back({"up", "log.file", (data_dir / "fencepost.log").string()});
  if (chain != nullptr) {
    overrides.push_back({"up", "chains[0].name", "dev"});
    overrides.push_back({"up", "chains[0].chain_id", std::to_string(chain->chain_id())});
    overrides.push_back({"up", "chains[0].rpc_urls", chain->rpc_url()});
    overrides.push_back({"up", "chains[0].confirmations.required", "2"});
    overrides.push_back({"up", "chains[0].max_in_flight", "16"});
    overrides.push_back({"up", "chains[0].shared", "true"});  // whoever tries things out uses cast as well
  }
  return all;
}

Result<std::unique_ptr<pg::EmbeddedCluster>> start_cluster(const fs::path& data_dir) {
  Step step("starting PostgreSQL");
  auto cluster = pg::EmbeddedCluster::start({.data_dir = data_dir / "postgres"});
  if (!cluster) step.fail();
  return cluster;
}

Result<std::unique_ptr<DevChain>> start_chain(const fs::path& data_dir) {
  Step step("starting the dev chain");
  auto chain = DevChain::start({.dir = data_dir / "chain"});
  if (!chain) step.fail();
  return chain;
}

// Runs the node on a thread of its own while this one, which PostgreSQL lives and dies with, starts PostgreSQL again
// whenever it has died. Three starts that fail in a row end it all.
Result<void> run_beside(pg::EmbeddedCluster& cluster, const Config& config, const NodeHooks& hooks) {
  Result<void> outcome;
  const UniqueFd ended(::eventfd(0, EFD_CLOEXEC));
  std::jthread node([&] {
    try {
      outcome = run_node(config, hooks);
    } catch (const std::exception&) {
      outcome = fail(error_of(std::current_exception()));
    }
    ::eventfd_write(ended.get(), 1);
  });
  int failures = 0;
  pollfd waiting{.fd = ended.get(), .events = POLLIN, .revents = 0};
  while (::poll(&waiting, 1, 500) <= 0) {
    if (cluster.running()) continue;
    log::error("PostgreSQL has died; starting it again", {{"log", cluster.log_file().string()}});
    if (const auto restarted = cluster.restart(); !restarted) {
      log::error("PostgreSQL does not start", restarted.error());
      if (++failures == 3) ::kill(::getpid(), SIGTERM);
    } else {
      failures = 0;
    }
  }
  node.join();
  return outcome;
}

Result<void> run(const UpOptions& options, const fs::path& data_dir) {
  // Only to learn whether the user brings a chain: with a mistake in it, better fail before anything starts.
  const auto asked = load_command_config({.file = options.config_file}, {}, KeyFiles::kOpened);
  if (!asked) return fail(asked.error());
  log::init({.level = asked->log.level,
             .format = asked->log.format,
             .file = (data_dir / "fencepost.log").string(),
             .echo_warnings = true});

  auto cluster = start_cluster(data_dir);
  if (!cluster) return fail(cluster.error());
  std::unique_ptr<DevChain> chain;
  if (asked->chains.empty()) {
    auto started = start_chain(data_dir);
    if (!started) return fail(started.error());
    chain = std::move(*started);
  }
  auto config = load_command_config(with_parts(options, (*cluster)->dsn(), chain.get(), data_dir), {"database.dsn"});
  if (!config) return fail(config.error());
  if (chain) {
    config->dev = true;
    for (const auto& account : evm::dev_accounts()) config->keystore.dev_keys.emplace_back(account.private_key);
  }
  auto key = read_or_make_dev_key(data_dir / "dev-api-key");
  if (!key) return fail(key.error());

  Announcement announcement(data_dir);
  const auto on_ready = [&](std::uint16_t port) {
    const auto& first = config->chains.front();
    announcement.publish({.url = url_of(config->http.host, port),
                          .api_key = *key,
                          .rpc_url = chain ? chain->rpc_url() : std::string(first.rpc_urls.front().reveal()),
                          .chain_id = first.chain_id,
                          .signers = chain ? chain->accounts() : std::vector<std::string>{},
                          .dsn = (*cluster)->dsn(),
                          .data_dir = data_dir,
                          .cluster_dir = (*cluster)->data_dir()});
  };
  const auto abandon = [&] { announcement.withdraw(); };
  const auto outcome = run_beside(
      **cluster, *config, {.on_ready = on_ready, .before_abandoning = abandon, .prepare = [&key](pg::Pool& pool) {
                             return ensure_dev_key(pool, *key);
                           }});
  if (!outcome) return fail(outcome.error());
  fmt::print(stderr, "\n");
  const Step step("stopping");
  if (chain) chain->stop();
  (*cluster)->stop();
  return {};
}

}  // namespace

Result<void> run_up(const UpOptions& options) {
  const auto data_dir = make_data_dir(options.data_dir);
  if (!data_dir) return fail(data_dir.error());
  return run(options, *data_dir);
}

}  // namespace fencepost
