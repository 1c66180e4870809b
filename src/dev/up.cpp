#include "dev/up.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "http/uri.hpp"
#include "node/node.hpp"
#include "pg/embedded_cluster.hpp"
#include "runtime/log.hpp"
#include "runtime/private_file.hpp"

#include "dev/dev_chain.hpp"
#include "dev/dev_key.hpp"
#include "dev/up_config.hpp"
#include "dev/up_json.hpp"
#include "dev/up_settings.hpp"
#include "dev/welcome.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;

// "· starting PostgreSQL … 1.2 s": shows a step and how long it took.
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

Result<fs::path> make_data_dir(const fs::path& wanted) {
  std::error_code ec;
  fs::create_directories(wanted, ec);
  auto absolute = fs::canonical(wanted, ec);
  if (ec) return fail(invalid("data_dir_unusable", fmt::format("cannot use {}: {}", wanted.string(), ec.message())));
  return absolute;
}

// Writes up.json and removes it at the end.
class Announcement {
 public:
  explicit Announcement(const fs::path& data_dir) : file_(up_json_file(data_dir)) { withdraw(); }
  ~Announcement() { withdraw(); }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

  void publish(const UpFacts& facts) {
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

// Absolute, so that commands in other directories find it; empty: none.
std::string config_file_of(const UpOptions& options) {
  auto file = options.config_file;
  if (const char* variable = std::getenv("FENCEPOST_CONFIG"); file.empty() && variable != nullptr) file = variable;
  return file.empty() ? file : fs::absolute(file).string();
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

// Runs the node on its own thread. The calling thread, whose end also ends PostgreSQL, restarts PostgreSQL whenever it
// dies. Three failed restarts in a row stop the node.
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
    log::error("PostgreSQL has died; restarting it", {{"log", cluster.log_file().string()}});
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
  // Loaded early to learn whether the user configures a chain, and to report mistakes before anything starts.
  const auto asked = load_command_config({.file = options.config_file}, {}, KeyFiles::kOpened);
  if (!asked) return fail(asked.error());
  const auto log_file = asked->log.file.empty() ? (data_dir / "fencepost.log").string() : asked->log.file;
  log::init({.level = asked->log.level, .format = asked->log.format, .file = log_file, .echo_warnings = true});
  for (const auto& warning : asked->warnings) log::warn(warning);
  if (!asked->database.dsn.empty()) {
    log::warn("'up' uses its own PostgreSQL and ignores database.dsn; run 'serve' to use your own database");
  }

  auto cluster = start_cluster(data_dir);
  if (!cluster) return fail(cluster.error());
  std::unique_ptr<DevChain> chain;
  if (asked->chains.empty()) {
    auto started = start_chain(data_dir);
    if (!started) return fail(started.error());
    chain = std::move(*started);
  }
  UpParts parts{.dsn = (*cluster)->dsn(), .log_file = log_file, .port = options.port};
  if (!asked->email.configured()) parts.mail_dir = mail_dir(data_dir);
  if (chain) {
    parts.chain_url = chain->rpc_url();
    parts.chain_id = static_cast<std::int64_t>(chain->chain_id());
  }
  const UpSettings settings{.from = up_config(config_file_of(options), parts), .dev_chain = chain != nullptr};
  const auto config = load_up_config(settings);
  if (!config) return fail(config.error());
  auto key = read_or_make_dev_key(data_dir / "dev-api-key");
  if (!key) return fail(key.error());

  Announcement announcement(data_dir);
  const auto on_ready = [&](std::uint16_t port) {
    const auto& first = config->chains.front();
    const auto scheme = config->http.tls_certificate_path.empty() ? "http" : "https";
    announcement.publish({.url = http::local_url(config->http.host, port, scheme),
                          .api_key = *key,
                          .rpc_url = chain ? chain->rpc_url() : std::string(first.rpc_urls.front().reveal()),
                          .chain_id = first.chain_id,
                          .signers = chain ? chain->accounts() : std::vector<std::string>{},
                          .dsn = (*cluster)->dsn(),
                          .data_dir = data_dir,
                          .cluster_dir = (*cluster)->data_dir(),
                          .log_file = log_file,
                          .mail_dir = parts.mail_dir,
                          .program = options.program,
                          .data_dir_flag = data_dir_flag(options.data_dir, fs::current_path()),
                          .settings = settings_json(settings, *config)});
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
