#include "pg/cluster_layout.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "runtime/log.hpp"

namespace fencepost::pg {
namespace {

namespace fs = std::filesystem;

std::optional<int> parse_major(std::string_view text) {
  int major = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), major);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return major;
}

bool has_programs(const fs::path& bin_dir) {
  return ::access((bin_dir / "postgres").c_str(), X_OK) == 0 && ::access((bin_dir / "initdb").c_str(), X_OK) == 0;
}

// "postgres (PostgreSQL) 15.14 (Debian …)"
std::optional<int> ask_version(const fs::path& postgres) {
  auto child = ChildProcess::start({.argv = {postgres.string(), "--version"}, .out = Output::pipe()});
  if (!child) return std::nullopt;
  std::array<char, 256> text{};
  const auto size = ::read(child->take_out().get(), text.data(), text.size());
  child->wait_blocking();
  const std::string_view line(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const auto name = line.find("(PostgreSQL) ");
  if (name == std::string_view::npos) return std::nullopt;
  return parse_major(line.substr(name + 13));
}

std::vector<ClusterPrograms> installed_programs(const fs::path& root) {
  std::vector<ClusterPrograms> found;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(root, missing)) {
    const auto major = parse_major(entry.path().filename().string());
    if (major && has_programs(entry.path() / "bin")) found.push_back({entry.path() / "bin", *major});
  }
  if (const auto initdb = find_in_path("initdb")) {
    const auto bin_dir = fs::weakly_canonical(*initdb).parent_path();
    const auto major = has_programs(bin_dir) ? ask_version(bin_dir / "postgres") : std::nullopt;
    if (major) found.push_back({bin_dir, *major});
  }
  return found;
}

bool may_enter(const struct stat& info, const Credentials& who) {
  if (who.uid == 0) return true;
  if (info.st_uid == who.uid) return (info.st_mode & S_IXUSR) != 0;
  const bool in_group = info.st_gid == who.gid || std::ranges::find(who.groups, info.st_gid) != who.groups.end();
  return (info.st_mode & (in_group ? S_IXGRP : S_IXOTH)) != 0;
}

// libpq and PostgreSQL split lists of directories at commas, with different rules for quotes. A path without special
// characters avoids both.
bool fits_a_socket(const fs::path& directory) {
  const std::string name = directory.string();
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("/._+-").contains(char(c));
  };
  const auto full = fmt::format("{}/.s.PGSQL.{}", name, kClusterPort);
  return full.size() < sizeof(sockaddr_un::sun_path) && std::ranges::all_of(name, plain);
}

}  // namespace

Error data_dir_unusable(const std::string& what) {
  return unavailable("data_dir_unusable", fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

std::string stable_hash(const fs::path& path) {
  // FNV-1a: it only has to tell a few paths of one machine apart, and to be the same in every run.
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const unsigned char c : path.string()) hash = (hash ^ c) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

Result<ClusterPrograms> find_cluster_programs(std::optional<int> major, const fs::path& root) {
  auto found = installed_programs(root);
  std::erase_if(found, [&](const auto& p) { return major ? p.major != *major : p.major < kOldestMajor; });
  const auto newest = std::ranges::max_element(found, {}, &ClusterPrograms::major);
  if (newest != found.end()) return *newest;
  if (major) {
    return fail(unavailable("postgres_missing",
                            fmt::format("the database was created by PostgreSQL {0}, whose server is not installed: "
                                        "apt-get install postgresql-{0}",
                                        *major)));
  }
  return fail(unavailable("postgres_missing",
                          fmt::format("no PostgreSQL server of version {} or newer found under {} or in PATH: "
                                      "apt-get install postgresql",
                                      kOldestMajor, root.string())));
}

std::optional<int> cluster_version(const fs::path& pgdata) {
  std::ifstream file(pgdata / "PG_VERSION");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  return parse_major(text);
}

Result<std::optional<Credentials>> cluster_user(const fs::path& pgdata) {
  struct stat info{};
  const bool exists = ::stat(pgdata.c_str(), &info) == 0;
  if (::geteuid() != 0) {
    if (exists && info.st_uid != ::geteuid()) {
      return fail(conflict("data_dir_not_ours", fmt::format("{} belongs to uid {}: run as that user or as root, or "
                                                            "choose another data directory",
                                                            pgdata.string(), info.st_uid)));
    }
    return std::nullopt;
  }
  if (exists && info.st_uid != 0) {
    auto owner = Credentials::of_uid(info.st_uid);
    return owner ? owner : Credentials{info.st_uid, info.st_gid, {info.st_gid}};
  }
  for (const auto* name : {"postgres", "nobody"}) {
    if (auto user = Credentials::of_user(name)) return user;
  }
  return fail(unavailable("no_cluster_user",
                          "PostgreSQL refuses to run as root, and neither user postgres nor nobody "
                          "exists: create one, or start Fencepost as another user than root"));
}

bool can_reach(const fs::path& directory, const Credentials& who) {
  // The server follows symbolic links, so check the directories that they lead to.
  for (fs::path place = fs::weakly_canonical(fs::absolute(directory));; place = place.parent_path()) {
    struct stat info{};
    if (::stat(place.c_str(), &info) == 0 && !may_enter(info, who)) return false;
    if (place == place.root_path()) return true;
  }
}

fs::path place_data_dir(const fs::path& asked, const std::optional<Credentials>& who, const fs::path& fallback_root) {
  auto absolute = fs::absolute(asked).lexically_normal();
  if (!who || can_reach(absolute, *who)) return absolute;
  auto fallback = fallback_root / stable_hash(absolute);
  log::info("the server's user cannot reach the data directory, so another directory is used",
            {{"asked", absolute.string()}, {"used", fallback.string()}, {"uid", who->uid}});
  return fallback;
}

Result<void> make_private_dir(const fs::path& directory, const std::optional<Credentials>& who) {
  const uid_t owner = who ? who->uid : ::geteuid();
  if (::mkdir(directory.c_str(), 0700) == 0) {
    if (who && ::lchown(directory.c_str(), who->uid, who->gid) != 0) {
      return fail(data_dir_unusable(fmt::format("cannot change the owner of {} to uid {}", directory.string(), owner)));
    }
    return {};
  }
  if (errno != EEXIST) return fail(data_dir_unusable(fmt::format("cannot create {}", directory.string())));
  // lstat, because another user may have put a symbolic link there.
  struct stat info{};
  if (::lstat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != owner ||
      (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(conflict("socket_dir_not_ours",
                         fmt::format("{} exists but is not a directory of mode 0700 that belongs to uid {}: remove it",
                                     directory.string(), owner)));
  }
  return {};
}

Result<fs::path> make_socket_dir(const fs::path& data_dir, const std::optional<Credentials>& who) {
  fs::path directory = data_dir / "socket";
  if (!fits_a_socket(directory)) {
    // Only root can write to /run. In /tmp another user may have created the path; make_private_dir then refuses it.
    if (who) {
      const fs::path parent = "/run/fencepost";
      if (::mkdir(parent.c_str(), 0711) == 0) ::chmod(parent.c_str(), 0711);
      directory = parent / stable_hash(data_dir);
    } else {
      directory = fmt::format("/tmp/fencepost-{}-{}", ::geteuid(), stable_hash(data_dir));
    }
    log::debug("the path does not fit a socket address, so another directory is used",
               {{"socketDir", directory.string()}});
  }
  if (auto made = make_private_dir(directory, who); !made) return fail(made.error());
  return directory;
}

std::string socket_dsn(const fs::path& socket_dir, const std::string& user, const std::string& database) {
  std::string host;
  for (const unsigned char c : socket_dir.string()) {
    const bool plain = std::isalnum(c) != 0 || std::string_view("._-").contains(char(c));
    host += plain ? std::string(1, char(c)) : fmt::format("%{:02X}", c);
  }
  return fmt::format("postgresql://{}@/{}?host={}&port={}", user, database, host, kClusterPort);
}

}  // namespace fencepost::pg
