#include "runtime/directory_lock.hpp"

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

namespace fencepost {

Result<UniqueFd> lock_directory(const std::filesystem::path& directory) {
  const auto file = directory / "lock";
  const auto unusable = [&] {
    return fail(unavailable("data_dir_unusable",
                            fmt::format("cannot write {}: {}", file.string(), std::generic_category().message(errno))));
  };
  UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return unusable();
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    std::string holder;
    std::ifstream(file) >> holder;
    return fail(conflict("data_dir_in_use",
                         fmt::format("{} is in use by another Fencepost (pid {}): stop that process, or choose another "
                                     "data directory",
                                     directory.string(), holder.empty() ? "unknown" : holder))
                    .with("pid", holder));
  }
  const auto pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(lock.get(), 0) != 0 || ::write(lock.get(), pid.data(), pid.size()) < 0) return unusable();
  return lock;
}

}  // namespace fencepost
