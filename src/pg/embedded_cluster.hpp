// A private PostgreSQL server, made, started and stopped by us: what `fencepost up` and the tests stand on.
//
//   auto cluster = EmbeddedCluster::start({.data_dir = "var/postgres"});
//   if (!cluster) …cluster.error()…
//   (*cluster)->dsn()   // postgresql://fencepost@/fencepost?host=…
//
// It listens on a Unix socket in a directory of mode 0700 and nowhere else, so whoever can connect is us or
// root. Started by root, it runs as an unprivileged user. In `data_dir`:
//   lock           held while we own the directory; a second owner gets `data_dir_in_use`
//   cluster/       the database itself (cluster.new/ while it is being made: a start that dies there leaves
//                  nothing half-made)
//   socket/        unless its path is too long, see socket_dir()
//   postgres.log   what the server says
// If the data directory cannot be reached by the server's user, another place is used: see data_dir().
//
// The server dies with the thread that called start (see child_process.hpp): the kernel asks it for a fast
// shutdown. A server that an earlier, killed owner left behind is stopped first.
//
// Everything blocks and belongs to one thread, but for dsn() and the paths, which any thread may read.
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
    // Holds the data when the server's user cannot reach data_dir.
    std::filesystem::path fallback_root = kFallbackRoot;
    // False for tests: nothing is flushed to disk, so a crash of the machine may lose the cluster.
    bool durable = true;
    // On top of ours, e.g. {"log_statement", "all"}.
    std::map<std::string, std::string> settings;
    // Long, since it includes recovery after a crash.
    std::chrono::seconds start_timeout{120};
  };

  // Returns when the database `fencepost` takes connections. Errors: postgres_missing, data_dir_in_use,
  // data_dir_not_ours, data_dir_unusable, socket_dir_not_ours, no_cluster_user, cannot_start, initdb_failed,
  // cluster_failed (with the last lines of its log), cluster_start_timeout.
  static Result<std::unique_ptr<EmbeddedCluster>> start(Options options);

  ~EmbeddedCluster();  // stops
  EmbeddedCluster(const EmbeddedCluster&) = delete;
  EmbeddedCluster& operator=(const EmbeddedCluster&) = delete;

  const std::string& dsn() const { return dsn_; }
  // Of another database of this server.
  std::string dsn(const std::string& database) const;

  // Where things really are.
  const std::filesystem::path& data_dir() const { return data_dir_; }
  const std::filesystem::path& socket_dir() const { return socket_dir_; }
  std::filesystem::path log_file() const { return data_dir_ / "postgres.log"; }
  std::filesystem::path pgdata() const { return data_dir_ / "cluster"; }

  // Of the postmaster; -1 when it is stopped.
  pid_t pid() const { return server_ ? server_->pid() : -1; }
  bool running() { return server_ && server_->running(); }

  // Ends when the server does, whether we asked for it or not. Needs a server that was started.
  awaitable<ExitStatus> wait();

  // Fast shutdown: sessions are cut, the data is checkpointed. Harder if it does not listen. Idempotent.
  void stop();
  // Stops if need be, and starts again with the same data, at the same dsn.
  Result<void> restart();
  // As if the machine had killed it: no goodbye to anybody. For tests; `restart` recovers.
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
