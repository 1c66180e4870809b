#include "runtime/private_file.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/unique_fd.hpp"

namespace fencepost {
namespace {

Error cannot_write(const std::filesystem::path& file, int reason) {
  return internal("cannot_write", fmt::format("cannot write {}: {}", file.string(), std::strerror(reason)));
}

}  // namespace

Result<void> write_private_file(const std::filesystem::path& file, std::string_view text) {
  auto fresh = file;
  fresh += ".new";
  const UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (fd.get() < 0 || ::fchmod(fd.get(), S_IRUSR | S_IWUSR) != 0) return fail(cannot_write(fresh, errno));
  while (!text.empty()) {
    const auto written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(cannot_write(fresh, errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd.get()) != 0 || ::rename(fresh.c_str(), file.c_str()) != 0) return fail(cannot_write(file, errno));
  // The file's name is part of the directory: without this fsync a power loss could undo the rename.
  const auto parent = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  const UniqueFd directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::fsync(directory.get()) != 0) return fail(cannot_write(file, errno));
  return {};
}

}  // namespace fencepost
