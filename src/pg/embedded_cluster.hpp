// A private PostgreSQL server that Fencepost creates, starts and stops, for `fencepost up` and for the tests.
//
//   auto cluster = EmbeddedCluster::start({.data_dir = "var/postgres"});
//   if (!cluster) …cluster.error()…
//   (*cluster)->dsn()   // postgresql://fencepost@/fencepost?host=…
//
// It listens only on a Unix socket in a directory of mode 0700, so only its owner and root can connect. When root
// starts it, the server runs as an unprivileged user. In `data_dir`:
//   lock           held while this process owns the directory; a second owner gets `data_dir_in_use`
//   cluster/       the database itself (cluster.new/ while it is created, so that a start that crashes leaves no
//                  incomplete cluster/)
//   socket/        unless its path is too long, see socket_dir()
//   postgres.log   the server's log
// If the server's user cannot reach the data directory, another directory is used: see data_dir().
//
// The server ends with the thread that called start (see child_process.hpp): the kernel then signals it to shut down
// fast. `start` first stops an orphaned server of an earlier owner that was killed.
//
// All methods block and belong to one thread, except dsn() and the paths, which any thread may read.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "pg/cluster_layout.hpp"
#include "runtime/child_process.hpp"

namespace fencepost::pg {

class EmbeddedCluster {
 public:
  struct Options {
    std::filesystem::path data_dir;
    // Parent of the directory that is used when the server's user cannot reach data_dir.
    std::filesystem::path fallback_root = kFallbackRoot;
    // False for tests: data is not flushed to disk, so a crash of the machine may lose the cluster.
    bool durable = true;
    // Server settings in addition to the defaults, e.g. {"log_statement", "all"}.
    std::map<std::string, std::string> settings;
    // Includes the time for recovery after a crash.
    std::chrono::seconds start_timeout{120};
  };

  // Returns when the database `fencepost` accepts connections. Errors: postgres_missing, data_dir_in_use,
  // data_dir_not_ours, data_dir_unusable, socket_dir_not_ours, no_cluster_user, cannot_start, initdb_failed,
  // cluster_failed (with the last lines of its log), cluster_start_timeout.
  static Result<std::unique_ptr<EmbeddedCluster>> start(Options options);

  ~EmbeddedCluster();  // stops
  EmbeddedCluster(const EmbeddedCluster&) = delete;
  EmbeddedCluster& operator=(const EmbeddedCluster&) = delete;

  const std::string& dsn() const { return dsn_; }
  // The DSN of another database of this server.
  std::string dsn(const std::string& database) const;

  // The directories in use, which may differ from the requested ones.
  const std::filesystem::path& data_dir() const { return data_dir_; }
  const std::filesystem::path& socket_dir() const { return socket_dir_; }
  std::filesystem::path log_file() const { return data_dir_ / "postgres.log"; }
  std::filesystem::path pgdata() const { return data_dir_ / "cluster"; }

  // The postmaster's pid; -1 when it is stopped.
  pid_t pid() const { return server_ ? server_->pid() : -1; }
  bool running() { return server_ && server_->running(); }

  // Returns when the server ends, by `stop` or by itself. Requires: the server was started.
  awaitable<ExitStatus> wait();

  // Fast shutdown: ends the sessions and writes a checkpoint; then stronger signals if the server does not end.
  // Idempotent.
  void stop();
  // Stops the server if it runs, and starts it again with the same data and dsn.
  Result<void> restart();
  // Kills the server with SIGKILL, as the kernel might. For tests; `restart` recovers.
  void kill();

 private:
  EmbeddedCluster(Options options, ClusterPrograms programs, std::optional<Credentials> who,
                  std::filesystem::path data_dir, UniqueFd lock);

  Result<void> prepare();
  Result<void> stop_leftovers() const;
  Result<void> make_cluster() const;
  Result<void> start_server();
  Result<void> wait_until_ready(std::uintmax_t log_begin);
  Result<void> create_database() const;
  std::vector<std::string> server_arguments() const;

  Options options_;
  ClusterPrograms programs_;
  std::optional<Credentials> who_;
  std::filesystem::path data_dir_;
  UniqueFd lock_;
  std::filesystem::path socket_dir_;
  std::string dsn_;
  std::optional<ChildProcess> server_;
};

}  // namespace fencepost::pg
