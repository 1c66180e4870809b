// Measures the database layer, on a private cluster with the durability of production.
//
//   pg_bench [select] [pipeline]     without arguments: both
//
// select     a prepared primary-key lookup by 16 coroutines through Database with its default options, compared with
//            pgbench with 16 clients doing the same on the same cluster
// pipeline   100 of those lookups as one Batch, compared with the same 100 awaited one by one on the same connection
//
// Both sides of a comparison take turns, so that other load on the machine affects both: ROUNDS times (default 3) for
// SECONDS_PER_ROUND (default 5) each. The result is the ratio of the medians. The exit code is 1 if a bar is missed.
#include <algorithm>
#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pg/database.hpp"
#include "pg/embedded_cluster.hpp"
#include "runtime/log.hpp"
#include "tests/support/temp_dir.hpp"

#include "bench/rounds.hpp"

namespace {

using namespace fencepost;
using namespace std::chrono_literals;
using bench::median;
using SteadyClock = std::chrono::steady_clock;

constexpr int kClients = 16;
constexpr int kBatchSize = 100;
constexpr int kAccounts = 100'000;  // rows that pgbench creates at scale 1
constexpr double kSelectBar = 1.0;
constexpr double kPipelineBar = 5.0;

constexpr pg::Statement kBalance{"bench_balance", "SELECT abalance FROM pgbench_accounts WHERE aid = $1"};

class Pgbench {
 public:
  explicit Pgbench(const pg::EmbeddedCluster& cluster) : socket_dir_(cluster.socket_dir().string()) {
    const auto programs = pg::find_cluster_programs(pg::cluster_version(cluster.pgdata()));
    if (!programs) throw Exception(programs.error());
    program_ = (programs->bin_dir / "pgbench").string();
  }

  void initialise() const { run({"-i", "-q", "-s", "1"}); }

  // Transactions per second.
  double lookups(int seconds) const {
    const auto said =
        run({"-n", "-S", "-M", "prepared", "-c", std::to_string(kClients), "-j", "2", "-T", std::to_string(seconds)});
    constexpr std::string_view kMark = "tps = ";
    const auto at = said.find(kMark);
    const double tps = at == std::string::npos ? 0 : std::strtod(said.c_str() + at + kMark.size(), nullptr);
    if (tps <= 0) throw Exception(internal("pgbench", "pgbench printed no \"tps = \" line: " + said));
    return tps;
  }

 private:
  std::string run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), program_);
    for (const char* more : {"-h", socket_dir_.c_str(), "-U", "fencepost", "fencepost"}) arguments.emplace_back(more);
    auto child = ChildProcess::start({.argv = arguments, .out = Output::pipe(), .err = Output::same_as_out()});
    if (!child) throw Exception(child.error());
    std::string said;
    run_blocking(for_each_line(child->take_out(), [&](std::string_view line) { said.append(line).append("\n"); }));
    if (const auto status = child->wait_blocking(); !status.success()) {
      throw Exception(internal("pgbench", fmt::format("pgbench {}: {}", status.to_string(), said)));
    }
    return said;
  }

  std::string program_;
  std::string socket_dir_;
};

bool report(std::string_view name, double ours, std::string_view other, double theirs, double bar) {
  const double ratio = ours / theirs;
  fmt::print("{}: {:.0f}/s, {} {:.0f}/s, ratio {:.2f} (bar {:.2f})\n", name, ours, other, theirs, ratio, bar);
  std::fflush(stdout);
  return ratio >= bar;
}

// --- select -----------------------------------------------------------------------------------------------------

awaitable<> client(pg::Pool& pool, std::uint32_t seed, SteadyClock::time_point end, std::uint64_t& answered) {
  std::minstd_rand random(seed);
  while (SteadyClock::now() < end) {
    const auto aid = static_cast<std::int64_t>(random() % kAccounts) + 1;
    const auto rows = co_await pool.query(kBalance, aid);
    rows.one().get<std::int64_t>(0);
    ++answered;
  }
}

// Runs the clients of one loop; returns how many answers they got.
awaitable<std::uint64_t> clients(pg::Database& db, std::uint32_t first, int count, SteadyClock::time_point end) {
  auto& pool = db.pool();
  std::uint64_t answered = 0;
  TaskGroup group(co_await this_executor(), "clients", static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    if (!group.spawn(client(pool, first + static_cast<std::uint32_t>(i) + 1, end, answered))) std::abort();
  }
  co_await group.stop(1h);
  co_return answered;
}

// Returns the answers per second, with the clients spread over all loops.
awaitable<double> lookups(Runtime& runtime, pg::Database& db, std::chrono::seconds time) {
  const auto start = SteadyClock::now();
  std::atomic<std::uint64_t> answered{0};
  const auto share = [&](std::size_t loop) {
    const auto loops = runtime.size();
    return static_cast<int>(kClients / loops + (loop < kClients % loops ? 1 : 0));
  };
  co_await runtime.on_every_loop([&](std::size_t loop) -> awaitable<> {
    answered += co_await clients(db, static_cast<std::uint32_t>(loop * 1000), share(loop), start + time);
  });
  co_return static_cast<double>(answered) / std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// Sends lookups through a Database of `loops` loops (0: as many as the daemon would have).
class Asker {
 public:
  Asker(const pg::EmbeddedCluster& cluster, std::size_t loops)
      : runtime_({.threads = loops}),
        db_(runtime_, {.dsn = Secret(cluster.dsn()), .application_name = "pg_bench"}, {}, metrics_) {
    runtime_.start();
    runtime_.run_on(0, db_.start());
    lookups(1s);  // connects, prepares, warms the caches
  }
  ~Asker() {
    runtime_.run_on(0, db_.stop(5s));
    runtime_.stop();
  }

  double lookups(std::chrono::seconds time) { return runtime_.run_on(0, ::lookups(runtime_, db_, time)); }
  std::size_t loops() const { return runtime_.size(); }

 private:
  Metrics metrics_;
  Runtime runtime_;
  pg::Database db_;
};

bool bench_select(const pg::EmbeddedCluster& cluster, const Pgbench& pgbench, int rounds, std::chrono::seconds time) {
  Asker daemon(cluster, 0);
  Asker one_loop(cluster, 1);
  std::vector<double> ours;
  std::vector<double> alone;
  std::vector<double> theirs;
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(daemon.lookups(time));
    theirs.push_back(pgbench.lookups(static_cast<int>(time.count())));
    alone.push_back(one_loop.lookups(time));
  }
  fmt::print("pg-select: with one loop and one connection {:.0f}/s, with {} loops as below\n", median(alone),
             daemon.loops());
  return report("pg-select", median(ours), "pgbench", median(theirs), kSelectBar);
}

// --- pipeline ---------------------------------------------------------------------------------------------------

// Runs `batches` until the time is up; returns statements per second.
awaitable<double> repeat(pg::Connection& connection, std::vector<pg::Batch> batches, std::chrono::seconds time) {
  const auto start = SteadyClock::now();
  std::uint64_t statements = 0;
  while (SteadyClock::now() < start + time) {
    for (const auto& batch : batches) {
      const auto results = co_await connection.run(batch, {.access = pg::Access::kRead});
      for (const auto& rows : results) rows.one().get<std::int64_t>(0);
      statements += results.size();
    }
  }
  co_return static_cast<double>(statements) / std::chrono::duration<double>(SteadyClock::now() - start).count();
}

struct PipelineRates {
  std::vector<double> together;
  std::vector<double> one_by_one;
};

awaitable<PipelineRates> measure_pipeline(std::string dsn, int rounds, std::chrono::seconds time) {
  pg::Connector connector({.dsn = Secret(dsn), .application_name = "pg_bench"});
  auto opened = co_await connector.connect(co_await this_executor());
  pg::OwnedConnection connection(std::move(opened), {});
  std::vector<pg::Batch> single(kBatchSize);
  std::vector<pg::Batch> whole(1);
  for (int i = 0; i < kBatchSize; ++i) {
    const std::int64_t aid = i * (kAccounts / kBatchSize) + 1;
    single[static_cast<std::size_t>(i)].add(kBalance, aid);
    whole.front().add(kBalance, aid);
  }
  PipelineRates rates;
  for (int i = 0; i < rounds; ++i) {
    rates.together.push_back(co_await repeat(*connection, whole, time));
    rates.one_by_one.push_back(co_await repeat(*connection, single, time));
  }
  co_return rates;
}

bool bench_pipeline(const pg::EmbeddedCluster& cluster, int rounds, std::chrono::seconds time) {
  const auto rates = run_blocking(measure_pipeline(cluster.dsn(), rounds, time));
  return report("pg-pipeline", median(rates.together), "one by one", median(rates.one_by_one), kPipelineBar);
}

int run(const std::vector<std::string_view>& wanted) {
  const auto wants = [&](std::string_view name) {
    return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
  };
  for (const auto name : wanted) {
    if (name != "select" && name != "pipeline") {
      fmt::print(stderr, "usage: pg_bench [select] [pipeline]\n");
      return 2;
    }
  }
  const int rounds = bench::rounds();
  const auto time = bench::time_per_round();
  const test::TempDir dir("bench");
  const auto cluster = pg::EmbeddedCluster::start({.data_dir = dir.path() / "postgres"});
  if (!cluster) throw Exception(cluster.error());
  const Pgbench pgbench(**cluster);
  pgbench.initialise();
  bool reached = true;
  if (wants("select")) reached = bench_select(**cluster, pgbench, rounds, time) && reached;
  if (wants("pipeline")) reached = bench_pipeline(**cluster, rounds, time) && reached;
  return reached ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    fmt::print(stderr, "pg_bench: {}\n", e.what());
    return 1;
  }
}
