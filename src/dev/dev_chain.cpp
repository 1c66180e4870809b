#include "dev/dev_chain.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/json.hpp>

#include "base/random.hpp"
#include "base/text.hpp"
#include "http/client.hpp"
#include "runtime/async.hpp"
#include "runtime/child_process.hpp"
#include "runtime/directory_lock.hpp"
#include "runtime/leftover_process.hpp"
#include "runtime/log.hpp"
#include "runtime/read_file.hpp"

#include "dev/chain_state.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using asio::ip::tcp;
using std::chrono::steady_clock;

// SIGTERM makes anvil write its state and exit. A second signal would interrupt the write.
const StopPlan kStopPlan{{SIGTERM, 0s}, {SIGKILL, 15s}};
constexpr std::uintmax_t kLargeState = 16U << 20U;
constexpr std::uintmax_t kLogLimit = 10U << 20U;
constexpr std::size_t kLogTail = 2048;

bool is_script(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return stream.get() == '#' && stream.get() == '!';
}

// Looks in node_modules/… of `place` and of the directories above it.
std::optional<fs::path> native_anvil_above(fs::path place) {
#if defined(__aarch64__)
  constexpr auto kNative = "node_modules/@foundry-rs/anvil-linux-arm64/bin/anvil";
#else
  constexpr auto kNative = "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil";
#endif
  for (;; place = place.parent_path()) {
    if (::access((place / kNative).c_str(), X_OK) == 0) return place / kNative;
    if (place == place.root_path()) return std::nullopt;
  }
}

bool is_free(std::uint16_t port) {
  asio::io_context context;
  tcp::acceptor probe(context);
  boost::system::error_code taken;
  probe.open(tcp::v4());
  probe.set_option(tcp::acceptor::reuse_address(true));
  probe.bind({asio::ip::address_v4::loopback(), port}, taken);
  if (!taken) probe.listen(1, taken);
  return !taken;
}

std::uint16_t choose_port(std::uint16_t wanted) {
  if (wanted != 0 && is_free(wanted)) return wanted;
  asio::io_context context;
  const tcp::acceptor probe(context, {asio::ip::address_v4::loopback(), 0});
  const auto port = probe.local_endpoint().port();
  if (wanted != 0) {
    log::info("the requested port is in use; the local chain listens on another", {{"wanted", wanted}, {"port", port}});
  }
  return port;
}

// Stops an anvil that an earlier, killed process left behind. An anvil is ours if its arguments name our state file.
Result<void> stop_leftovers(const fs::path& state) {
  const auto is_ours = [&](const ProcessInfo& p) {
    return p.exe.filename() == "anvil" && p.has_argument(state.string());
  };
  for (const auto& left : LeftoverProcess::find_all(is_ours)) {
    log::info("stopping an orphaned local chain of an earlier run", {{"pid", left.pid()}});
    // The death of its owner has already signalled it to write its state and exit: wait for that first.
    if (!left.stop_blocking({{SIGTERM, 3s}, {SIGKILL, 15s}}, 5s)) {
      return fail(
          conflict("data_dir_in_use",
                   fmt::format("the orphaned local chain of an earlier run (pid {}) does not stop, even after SIGKILL",
                               left.pid())));
    }
  }
  return {};
}

}  // namespace

Result<fs::path> find_anvil() {
  std::error_code unreadable;
  for (const auto& place :
       {fs::current_path(unreadable), fs::read_symlink("/proc/self/exe", unreadable).parent_path()}) {
    if (place.empty()) continue;
    if (auto native = native_anvil_above(place)) return *native;
  }
  if (const auto found = find_in_path("anvil")) {
    if (!is_script(*found)) return *found;
    if (auto native = native_anvil_above(fs::canonical(*found).parent_path())) return *native;
  }
  return fail(
      unavailable("anvil_missing",
                  "anvil, the program of the local chain, is not installed: run ./fp setup, or configure a chain"));
}

// Members below `context_` are used on its thread only, except for the atomics and members that are constant after
// start.
class DevChain::Supervisor {
 public:
  Supervisor(Options options, UniqueFd lock, std::uint16_t port)
      : options_(std::move(options)),
        lock_(std::move(lock)),
        port_(port),
        url_(fmt::format("http://127.0.0.1:{}", port)),
        state_(options_.dir),
        client_(context_.get_executor(), {.connect_timeout = 2s, .total_timeout = 5s}),
        pause_(context_) {}

  Result<void> start() {
    std::promise<Result<void>> ready;
    auto started = ready.get_future();
    done_ = asio::co_spawn(context_, supervise(std::move(ready)), asio::use_future);
    thread_ = std::thread([this] { context_.run(); });
    return started.get();
  }

  void stop() {
    if (!thread_.joinable()) return;
    asio::co_spawn(context_, end_child(), asio::use_future).get();
    done_.get();
    context_.stop();
    thread_.join();
  }

  const std::string& url() const { return url_; }
  const std::vector<std::string>& accounts() const { return accounts_; }
  bool healthy() const { return deaths_ < kTooManyDeaths && !stopping_; }
  std::uint64_t restarts() const { return restarts_; }
  pid_t pid() const { return pid_; }

 private:
  // Handles failures outside anvil, such as a full disk: they are logged and make healthy() false.
  awaitable<> supervise(std::promise<Result<void>> ready) {
    Result<void> up = fail(internal("dev_chain_failed", "not started"));
    bool answered = false;
    try {
      up = co_await launch();
      if (up) up = co_await learn_accounts();
      ready.set_value(up);
      answered = true;
      while (up && !stopping_) {
        co_await watch();
        if (!stopping_) co_await start_again();
      }
    } catch (const std::exception&) {
      const auto error = error_of(std::current_exception());
      log::error("the local chain is no longer supervised", error);
      deaths_ = kTooManyDeaths;
      if (!answered) ready.set_value(fail(error));
    }
  }

  // Waits until anvil ends. Copies every dump soon after it is written: the next one may be truncated.
  awaitable<> watch() {
    auto next_copy = steady_clock::now() + copy_interval();
    while (child_) {
      const auto settled = launched_ + options_.settled;
      const auto ended = co_await child_->wait_until(deaths_ > 0 ? std::min(settled, next_copy) : next_copy);
      if (ended) break;
      const auto now = steady_clock::now();
      if (now >= settled) deaths_ = 0;
      if (now < next_copy) continue;
      state_.keep_copy();
      next_copy = now + copy_interval();
    }
    pid_ = -1;
  }

  awaitable<> start_again() {
    ++restarts_;
    deaths_ = steady_clock::now() - launched_ < options_.settled ? deaths_ + 1 : 1;
    if (deaths_ == 1) backoff_.reset();
    const auto delay = backoff_.next();
    log::warn("the local chain has ended; restarting it",
              {{"status", child_ ? child_->status().value_or(ExitStatus{}).to_string() : "did not start"},
               {"restarts", restarts_.load()},
               {"delayMs", delay.count()}});
    pause_.expires_after(delay);
    co_await pause_.async_wait(use_tuple);
    if (stopping_) co_return;
    const auto up = co_await launch();
    if (!up && !stopping_) log::error("the local chain does not start", up.error());
  }

  awaitable<> end_child() {
    stopping_ = true;
    pause_.cancel();
    if (child_) co_await child_->stop(kStopPlan);
  }

  // How often anvil writes its state and we look for a new one to copy: less often for a large state.
  std::chrono::seconds state_interval() const { return state_.size() > kLargeState ? 60s : 5s; }
  std::chrono::milliseconds copy_interval() const { return state_.size() > kLargeState ? 60'000ms : 250ms; }

  std::vector<std::string> arguments() const {
    return {options_.program, "--host", "127.0.0.1", "--port", std::to_string(port_), "--chain-id",
            std::to_string(kChainId), "--accounts", "10", "--block-time", std::to_string(options_.block_time.count()),
            "--state", state_.file(), "--state-interval", std::to_string(state_interval().count()),
            // Without a limit anvil writes the state of every past block to a file: gigabytes a day.
            "--prune-history", "32", "--quiet"};
  }

  // Starts with the current state, else with the last good copy, else without a state.
  awaitable<Result<void>> launch() {
    state_.prepare();
    auto up = co_await launch_once();
    while (!up && !stopping_ && state_.size() > 0 && up.error().message.contains("--state <PATH>")) {
      state_.set_aside();
      up = co_await launch_once();
    }
    if (up && state_.size() == 0) up = co_await launch_from_first_dump();
    // Another process took the port after we chose it: choose another, but only before users know the address.
    for (int tries = 0;
         !up && !stopping_ && accounts_.empty() && tries < 3 && up.error().message.contains("Address already in use");
         ++tries) {
      port_ = choose_port(0);
      url_ = fmt::format("http://127.0.0.1:{}", port_);
      up = co_await launch_once();
    }
    if (up) state_.keep_copy();
    co_return up;
  }

  // A new chain writes its first dump before it is used, so that there is a complete copy of its genesis if a later
  // dump is truncated. Anvil writes a dump when it is asked to end.
  awaitable<Result<void>> launch_from_first_dump() {
    co_await child_->stop(kStopPlan);
    co_return co_await launch_once();
  }

  awaitable<Result<void>> launch_once() {
    const auto log = options_.dir / "anvil.log";
    if (file_size_or_zero(log) > kLogLimit) fs::rename(log, options_.dir / "anvil.log.1");
    const auto log_begin = file_size_or_zero(log);
    launched_ = steady_clock::now();
    child_.reset();
    auto child = ChildProcess::start(
        {.argv = arguments(), .out = Output::file(log), .err = Output::same_as_out(), .death_signal = SIGTERM});
    if (!child) co_return fail(child.error());
    child_ = std::move(*child);
    pid_ = child_->pid();
    const auto deadline = launched_ + options_.start_timeout;
    for (;;) {
      const auto id = co_await call("eth_chainId");
      const bool answered = id && id->is_string() && id->as_string() == fmt::format("{:#x}", kChainId);
      // Another anvil on the port would answer too; ours then ends at once, because it cannot listen.
      const auto ended = co_await child_->wait_until(steady_clock::now() + (answered ? 100ms : 25ms));
      if (answered && !ended) co_return Result<void>{};
      if (ended || steady_clock::now() >= deadline) {
        co_return fail(
            unavailable("dev_chain_failed", fmt::format("anvil {}:\n{}", ended ? ended->to_string() : "does not answer",
                                                        read_tail(log, log_begin, kLogTail))));
      }
    }
  }

  awaitable<Result<void>> learn_accounts() {
    const auto listed = co_await call("eth_accounts");
    if (!listed) co_return fail(listed.error());
    if (!listed->is_array()) co_return fail(unavailable("dev_chain_failed", "anvil did not list its accounts"));
    for (const auto& account : listed->as_array()) {
      accounts_.push_back(lowercase(account.as_string()));
    }
    co_return Result<void>{};
  }

  awaitable<Result<boost::json::value>> call(std::string method) {
    http::ClientRequest request{.method = "POST", .url = url_, .headers = {{"content-type", "application/json"}}};
    request.body = fmt::format(R"({{"jsonrpc":"2.0","id":1,"method":"{}","params":[]}})", method);
    const auto reply = co_await client_.send(std::move(request));
    if (!reply) co_return fail(reply.error());
    boost::system::error_code bad;
    const auto parsed = boost::json::parse(reply->body, bad);
    const auto* object = bad ? nullptr : parsed.if_object();
    const auto* result = object != nullptr ? object->if_contains("result") : nullptr;
    if (result == nullptr) co_return fail(unavailable("dev_chain_failed", "anvil's answer has no result"));
    co_return *result;
  }

  Options options_;
  UniqueFd lock_;
  std::uint16_t port_;
  std::string url_;
  std::vector<std::string> accounts_;
  std::atomic<int> deaths_{0};
  std::atomic<std::uint64_t> restarts_{0};
  std::atomic<pid_t> pid_{-1};
  std::atomic<bool> stopping_{false};

  asio::io_context context_{1};
  asio::executor_work_guard<Executor> guard_{context_.get_executor()};
  ChainState state_;
  http::Client client_;
  asio::steady_timer pause_;
  SystemRandom random_;
  Backoff backoff_{options_.backoff, random_};
  std::optional<ChildProcess> child_;
  steady_clock::time_point launched_;
  std::future<void> done_;
  std::thread thread_;
};

DevChain::DevChain(std::unique_ptr<Supervisor> supervisor) : supervisor_(std::move(supervisor)) {}

DevChain::~DevChain() {
  stop();
}

Result<std::unique_ptr<DevChain>> DevChain::start(Options options) {
  options.dir = fs::absolute(options.dir).lexically_normal();
  if (options.program.empty()) {
    auto found = find_anvil();
    if (!found) return fail(found.error());
    options.program = std::move(*found);
  }
  std::error_code ec;
  fs::create_directories(options.dir, ec);
  if (ec)
    return fail(unavailable("data_dir_unusable",
                            fmt::format("cannot create directory {}: {}", options.dir.string(), ec.message())));
  auto lock = lock_directory(options.dir);
  if (!lock) return fail(lock.error());
  if (auto stopped = stop_leftovers(ChainState(options.dir).file()); !stopped) return fail(stopped.error());

  const auto port = choose_port(options.port);
  std::unique_ptr<DevChain> chain(
      new DevChain(std::make_unique<Supervisor>(std::move(options), std::move(*lock), port)));
  if (auto up = chain->supervisor_->start(); !up) return fail(up.error());
  return chain;
}

void DevChain::stop() {
  supervisor_->stop();
}
const std::string& DevChain::rpc_url() const {
  return supervisor_->url();
}
const std::vector<std::string>& DevChain::accounts() const {
  return supervisor_->accounts();
}
bool DevChain::healthy() const {
  return supervisor_->healthy();
}
std::uint64_t DevChain::restarts() const {
  return supervisor_->restarts();
}
pid_t DevChain::pid() const {
  return supervisor_->pid();
}

}  // namespace fencepost
