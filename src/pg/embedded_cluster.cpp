#include "pg/embedded_cluster.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <locale.h>
#include <sys/stat.h>

#include "runtime/directory_lock.hpp"
#include "runtime/leftover_process.hpp"
#include "runtime/log.hpp"
#include "runtime/read_file.hpp"

namespace fencepost::pg {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kUser = "fencepost";
constexpr auto kDatabase = "fencepost";
constexpr std::uintmax_t kLogLimit = 10U << 20U;
constexpr std::size_t kLogTail = 4096;

// SIGINT is a fast shutdown; SIGQUIT is an immediate one, after which the next start runs recovery.
const StopPlan kStopPlan{{SIGINT, 0s}, {SIGQUIT, 10s}, {SIGKILL, 15s}};

// A fixed environment: PGDATA, PGOPTIONS or the locale of the caller must not affect the server.
std::vector<std::string> server_environment() {
  std::vector<std::string> env{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"};
  // A PostgreSQL built from source may need it to find its libraries.
  if (const char* libraries = ::getenv("LD_LIBRARY_PATH")) env.push_back(fmt::format("LD_LIBRARY_PATH={}", libraries));
  return env;
}

std::string best_locale() {
  const locale_t utf8 = ::newlocale(LC_ALL_MASK, "C.UTF-8", locale_t{});
  if (utf8 == locale_t{}) return "C";
  ::freelocale(utf8);
  return "C.UTF-8";
}

// Creates the directory and its missing parents. A server that runs as another user may pass through the parents,
// whatever the umask is, but may not list them.
Result<void> make_data_dir(const fs::path& directory, bool shared) {
  std::error_code ec;
  if (fs::is_directory(directory, ec)) return {};
  if (auto made = make_data_dir(directory.parent_path(), shared); !made) return made;
  if (::mkdir(directory.c_str(), 0700) == 0 && (!shared || ::chmod(directory.c_str(), 0711) == 0)) return {};
  return fail(data_dir_unusable(fmt::format("cannot create {}", directory.string())));
}

std::optional<pid_t> first_line_pid(const fs::path& file) {
  std::ifstream stream(file);
  pid_t pid = 0;
  if (!(stream >> pid)) return std::nullopt;
  return pid;
}

// PostgreSQL refuses to start when the pid in this file belongs to any process of its user, even an unrelated one or a
// zombie. This process holds the lock and checks more closely: the file stays only when the pid belongs to a server of
// this cluster, or to a process that may not be inspected.
void remove_stale_pid_file(const fs::path& file, const fs::path& pgdata) {
  const auto pid = first_line_pid(file);
  if (!pid) return;
  const auto process = process_info(*pid);
  if (process && (process->cwd.empty() || process->cwd == pgdata)) return;
  std::error_code gone_already;
  fs::remove(file, gone_already);
}

}  // namespace

EmbeddedCluster::EmbeddedCluster(Options options, ClusterPrograms programs, std::optional<Credentials> who,
                                 fs::path data_dir, UniqueFd lock)
    : options_(std::move(options)),
      programs_(std::move(programs)),
      who_(std::move(who)),
      data_dir_(std::move(data_dir)),
      lock_(std::move(lock)) {}

EmbeddedCluster::~EmbeddedCluster() {
  stop();
}

Result<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::start(Options options) {
  const auto asked = fs::absolute(options.data_dir).lexically_normal();
  auto who = cluster_user(asked / "cluster");
  if (!who) return fail(who.error());
  const auto data_dir = place_data_dir(asked, *who, options.fallback_root);
  // The fallback may hold an existing cluster, whose owner may differ from the user of a new one.
  if (data_dir != asked) who = cluster_user(data_dir / "cluster");
  if (!who) return fail(who.error());

  auto programs = find_cluster_programs(cluster_version(data_dir / "cluster"));
  if (!programs) return fail(programs.error());
  if (auto made = make_data_dir(data_dir, who->has_value()); !made) return fail(made.error());
  auto lock = lock_directory(data_dir);
  if (!lock) return fail(lock.error());

  std::unique_ptr<EmbeddedCluster> cluster(
      new EmbeddedCluster(std::move(options), *programs, std::move(*who), data_dir, std::move(*lock)));
  if (auto prepared = cluster->prepare(); !prepared) return fail(prepared.error());
  return cluster;
}

Result<void> EmbeddedCluster::prepare() {
  auto socket_dir = make_socket_dir(data_dir_, who_);
  if (!socket_dir) return fail(socket_dir.error());
  socket_dir_ = std::move(*socket_dir);
  dsn_ = dsn(kDatabase);

  if (!cluster_version(pgdata())) {
    if (auto made = make_cluster(); !made) return made;
  }
  if (auto started = start_server(); !started) return started;
  return create_database();
}

std::string EmbeddedCluster::dsn(const std::string& database) const {
  return socket_dsn(socket_dir_, kUser, database);
}

Result<void> EmbeddedCluster::make_cluster() const {
  const auto unfinished = data_dir_ / "cluster.new";
  std::error_code ec;
  fs::remove_all(unfinished, ec);
  if (auto made = make_private_dir(unfinished, who_); !made) return made;

  const auto log_begin = file_size_or_zero(log_file());
  std::vector<std::string> argv{programs_.bin_dir / "initdb",
                                fmt::format("--pgdata={}", unfinished.string()),
                                fmt::format("--username={}", kUser),
                                "--auth-local=trust",
                                "--auth-host=reject",
                                "--encoding=UTF8",
                                fmt::format("--locale={}", best_locale())};
  if (!options_.durable) argv.emplace_back("--no-sync");
  auto initdb = ChildProcess::start({.argv = std::move(argv),
                                     .env = server_environment(),
                                     .cwd = "/",
                                     .out = Output::file(log_file()),
                                     .err = Output::same_as_out(),
                                     .run_as = who_});
  if (!initdb) return fail(initdb.error());
  const auto ended = initdb->wait_blocking_until(steady_clock::now() + options_.start_timeout);
  if (!ended || !ended->success()) {
    return fail(unavailable("initdb_failed",
                            fmt::format("PostgreSQL's initdb {}:\n{}", ended ? ended->to_string() : "did not finish",
                                        read_tail(log_file(), log_begin, kLogTail))));
  }
  if (::rename(unfinished.c_str(), pgdata().c_str()) != 0) {
    return fail(data_dir_unusable(fmt::format("cannot rename {}", unfinished.string())));
  }
  const UniqueFd directory(::open(data_dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (options_.durable) ::fsync(directory.get());
  log::info("created a database cluster", {{"dir", data_dir_.string()}, {"postgres", programs_.major}});
  return {};
}

Result<void> EmbeddedCluster::stop_leftovers() const {
  // The working directory of every process of a PostgreSQL server is its data directory; no other program uses it.
  const auto directory = fs::canonical(pgdata());
  const auto is_ours = [&](const ProcessInfo& p) { return p.exe.filename() == "postgres" && p.cwd == directory; };

  const auto recorded = first_line_pid(pgdata() / "postmaster.pid");
  if (const auto postmaster = recorded ? LeftoverProcess::find(*recorded, is_ours) : std::nullopt) {
    log::info("stopping the database server that an earlier run left behind", {{"pid", postmaster->pid()}});
    // A server that already shuts down, because its owner died, ignores a second request.
    if (!postmaster->stop_blocking({{SIGINT, 0s}, {SIGQUIT, 15s}, {SIGKILL, 20s}}, 10s)) {
      return fail(conflict("data_dir_in_use", fmt::format("the database server left behind by an earlier run (pid {}) "
                                                          "does not stop; end that process and start again",
                                                          postmaster->pid())));
    }
  }
  // Other processes are orphaned sessions of a postmaster that was killed. They end by themselves, but until then their
  // shared memory prevents a new server from starting.
  for (const auto& session : LeftoverProcess::find_all(is_ours)) {
    if (!session.stop_blocking({{SIGQUIT, 5s}, {SIGKILL, 10s}}, 10s)) {
      return fail(conflict("data_dir_in_use", fmt::format("a database session left behind by an earlier run (pid {}) "
                                                          "does not end; end that process and start again",
                                                          session.pid())));
    }
  }
  remove_stale_pid_file(pgdata() / "postmaster.pid", directory);
  remove_stale_pid_file(socket_dir_ / fmt::format(".s.PGSQL.{}.lock", kClusterPort), directory);
  return {};
}

std::vector<std::string> EmbeddedCluster::server_arguments() const {
  std::map<std::string, std::string> settings{
      {"listen_addresses", ""},
      {"port", std::to_string(kClusterPort)},
      {"unix_socket_directories", socket_dir_.string()},
      {"unix_socket_permissions", "0700"},
      {"max_connections", "200"},
      {"shared_buffers", "128MB"},
      {"max_wal_size", "1GB"},
      {"jit", "off"},  // statements are short: compiling them costs more than it saves
      {"timezone", "UTC"},
      {"log_timezone", "UTC"},
      {"log_line_prefix", "%m [%p] %q%a "},
      {"logging_collector", "off"},
  };
  if (!options_.durable) {
    settings.insert({{"fsync", "off"},
                     {"synchronous_commit", "off"},
                     {"full_page_writes", "off"},
                     {"wal_level", "minimal"},
                     {"max_wal_senders", "0"}});
  }
  for (const auto& [name, value] : options_.settings) settings[name] = value;

  std::vector<std::string> argv{programs_.bin_dir / "postgres", "-D", pgdata()};
  for (const auto& [name, value] : settings) {
    argv.emplace_back("-c");
    argv.push_back(fmt::format("{}={}", name, value));
  }
  return argv;
}

Result<void> EmbeddedCluster::start_server() {
  if (auto stopped = stop_leftovers(); !stopped) return stopped;
  if (file_size_or_zero(log_file()) > kLogLimit) {
    std::error_code ec;
    fs::rename(log_file(), data_dir_ / "postgres.log.1", ec);
  }
  const auto log_begin = file_size_or_zero(log_file());
  auto server = ChildProcess::start({.argv = server_arguments(),
                                     .env = server_environment(),
                                     .cwd = "/",
                                     .out = Output::file(log_file()),
                                     .err = Output::same_as_out(),
                                     .run_as = who_,
                                     .death_signal = SIGINT});
  if (!server) return fail(server.error());
  server_ = std::move(*server);
  return wait_until_ready(log_begin);
}

Result<void> EmbeddedCluster::wait_until_ready(std::uintmax_t log_begin) {
  const auto deadline = steady_clock::now() + options_.start_timeout;
  const auto target = dsn("postgres") + "&connect_timeout=5";
  while (PQping(target.c_str()) != PQPING_OK) {
    if (const auto ended = server_->wait_blocking_until(steady_clock::now() + 20ms)) {
      return fail(unavailable("cluster_failed", fmt::format("the database server {}:\n{}", ended->to_string(),
                                                            read_tail(log_file(), log_begin, kLogTail))));
    }
    if (steady_clock::now() >= deadline) {
      stop();
      return fail(unavailable("cluster_start_timeout",
                              fmt::format("the database server was not ready within {} s:\n{}",
                                          options_.start_timeout.count(), read_tail(log_file(), log_begin, kLogTail))));
    }
  }
  return {};
}

Result<void> EmbeddedCluster::create_database() const {
  using Connection = std::unique_ptr<PGconn, decltype([](PGconn* c) { PQfinish(c); })>;
  using Reply = std::unique_ptr<PGresult, decltype([](PGresult* r) { PQclear(r); })>;
  const Connection connection(PQconnectdb(dsn("postgres").c_str()));
  const auto failed = [&] {
    return fail(unavailable("cluster_failed", fmt::format("cannot create the database {}: {}", kDatabase,
                                                          PQerrorMessage(connection.get()))));
  };
  const Reply found(PQexec(connection.get(), "SELECT FROM pg_database WHERE datname = 'fencepost'"));
  if (PQresultStatus(found.get()) != PGRES_TUPLES_OK) return failed();
  if (PQntuples(found.get()) == 1) return {};
  const Reply created(PQexec(connection.get(), "CREATE DATABASE fencepost"));
  if (PQresultStatus(created.get()) != PGRES_COMMAND_OK) return failed();
  return {};
}

awaitable<ExitStatus> EmbeddedCluster::wait() {
  return server_->wait();
}

void EmbeddedCluster::stop() {
  if (!server_) return;
  const auto ended = server_->stop_blocking(kStopPlan);
  if (!ended.success()) log::warn("the database server did not end cleanly", {{"status", ended.to_string()}});
  server_.reset();
}

Result<void> EmbeddedCluster::restart() {
  stop();
  return start_server();
}

void EmbeddedCluster::kill() {
  if (!server_) return;
  server_->signal(SIGKILL);
  server_->wait_blocking();
  server_.reset();
}

}  // namespace fencepost::pg
