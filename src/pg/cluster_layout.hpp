// Decides where the files of an embedded cluster are, which programs run it, and as which user, before anything starts.
// The same requested path must always give the same places: otherwise a restart would not find its data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "runtime/child_process.hpp"

namespace fencepost::pg {

inline constexpr auto kFallbackRoot = "/var/lib/fencepost";
inline constexpr int kOldestMajor = 14;
inline constexpr int kClusterPort = 5432;  // only part of the socket's name: the server does not listen on TCP

struct ClusterPrograms {
  std::filesystem::path bin_dir;
  int major = 0;
};

// Finds the newest PostgreSQL of version 14 or later, or exactly `major` when a cluster of that version exists already.
// Looks under `root` (where Debian installs it) and then in PATH. Otherwise fails with `postgres_missing`, which names
// the package to install.
Result<ClusterPrograms> find_cluster_programs(std::optional<int> major,
                                              const std::filesystem::path& root = "/usr/lib/postgresql");

// The PostgreSQL version that created the cluster in `pgdata`; nullopt when there is no cluster.
std::optional<int> cluster_version(const std::filesystem::path& pgdata);

// The user that the server must run as, because PostgreSQL refuses to run as root; nullopt when the caller is not root
// and runs it as itself. Root runs an existing cluster as its owner, a new one as `postgres` or else `nobody`.
Result<std::optional<Credentials>> cluster_user(const std::filesystem::path& pgdata);

// Whether `who` may enter every existing directory on the path to `directory`, by owner, group and mode.
bool can_reach(const std::filesystem::path& directory, const Credentials& who);

// The requested directory as an absolute path; or, when `who` cannot reach it (as in a home of mode 0700), a directory
// under `fallback_root`.
std::filesystem::path place_data_dir(const std::filesystem::path& asked, const std::optional<Credentials>& who,
                                     const std::filesystem::path& fallback_root = kFallbackRoot);

// A directory of mode 0700 that the server's user owns, created if it is missing: `data_dir`/socket, or a short path
// elsewhere when that path does not fit a socket address (107 bytes) or would need quoting. Fails with
// `socket_dir_not_ours` when another user owns that path, or when it is not such a directory.
Result<std::filesystem::path> make_socket_dir(const std::filesystem::path& data_dir,
                                              const std::optional<Credentials>& who);

// Creates one directory of mode 0700 owned by `who` (nullopt: by the caller), or accepts an existing one.
Result<void> make_private_dir(const std::filesystem::path& directory, const std::optional<Credentials>& who);

// The error `data_dir_unusable`, with the text of errno as its reason.
Error data_dir_unusable(const std::string& what);

// 16 hex digits. They must not change between versions: they name the directories of existing clusters.
std::string stable_hash(const std::filesystem::path& path);

// A libpq URI for a server that listens on a Unix socket in `socket_dir`.
std::string socket_dsn(const std::filesystem::path& socket_dir, const std::string& user, const std::string& database);

}  // namespace fencepost::pg
