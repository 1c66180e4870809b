#include "node/private_file.hpp"

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
    if (written < 0) return fail(cannot_write(fresh, errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd.get()) != 0 || ::rename(fresh.c_str(), file.c_str()) != 0) return fail(cannot_write(file, errno));
  return {};
}

}  // namespace fencepost
