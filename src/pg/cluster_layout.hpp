// Where an embedded cluster lives, which programs run it, and as whom. All decided before anything starts, and
// all of it stable: the same asked-for path gives the same places again, or yesterday's data would be lost.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "runtime/child_process.hpp"

namespace fencepost::pg {

inline constexpr auto kFallbackRoot = "/var/lib/fencepost";
inline constexpr int kOldestMajor = 14;
inline constexpr int kClusterPort = 5432;  // only a part of the socket's name: nothing listens on TCP

struct ClusterPrograms {
  std::filesystem::path bin_dir;
  int major = 0;
};

// The newest PostgreSQL of at least version 14, or exactly `major` when a cluster of that version exists
// already. Looks under `root` (Debian's place) and then in PATH. `postgres_missing` names the package to install.
Result<ClusterPrograms> find_cluster_programs(std::optional<int> major,
                                              const std::filesystem::path& root = "/usr/lib/postgresql");

// The version that made the cluster in `pgdata`; nothing when there is none.
std::optional<int> cluster_version(const std::filesystem::path& pgdata);

// As whom the server must run, since PostgreSQL refuses root. Nothing: as ourselves, we are not root.
// Root runs an existing cluster as its owner, a new one as `postgres` or else `nobody`.
Result<std::optional<Credentials>> cluster_user(const std::filesystem::path& pgdata);

// May `who` pass through every directory on the way to `directory`, as far as that exists? Judged by owner,
// group and mode.
bool can_reach(const std::filesystem::path& directory, const Credentials& who);

// The asked-for directory, made absolute; or, when `who` cannot reach that (a home of mode 0700), one of its
// own under `fallback_root`.
std::filesystem::path place_data_dir(const std::filesystem::path& asked, const std::optional<Credentials>& who,
                                     const std::filesystem::path& fallback_root = kFallbackRoot);

// A directory of mode 0700 that belongs to the server's user, made if it is missing: `data_dir`/socket, or a
// short one elsewhere when that name does not fit a socket address (107 bytes) or would need quoting.
// `socket_dir_not_ours` when somebody else has put something there.
Result<std::filesystem::path> make_socket_dir(const std::filesystem::path& data_dir,
                                              const std::optional<Credentials>& who);

// Makes one directory, with exactly this mode and owner, or accepts one that is like that already.
Result<void> make_private_dir(const std::filesystem::path& directory, const std::optional<Credentials>& who);

// The error `data_dir_unusable`: what failed, and the reason that errno gives.
Error data_dir_unusable(const std::string& what);

// 16 hex digits, the same for the same path for ever.
std::string stable_hash(const std::filesystem::path& path);

// A libpq URI for a server that listens on a Unix socket in `socket_dir`.
std::string socket_dsn(const std::filesystem::path& socket_dir, const std::string& user, const std::string& database);

}  // namespace fencepost::pg
