#include "runtime/read_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/unique_fd.hpp"

namespace fencepost {

std::string read_file(const std::filesystem::path& file, std::uintmax_t begin) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 16384> chunk;
  while (fd) {
    const auto got = ::pread(fd.get(), chunk.data(), chunk.size(), static_cast<off_t>(begin + text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::string read_tail(const std::filesystem::path& file, std::uintmax_t begin, std::size_t limit) {
  const auto end = file_size_or_zero(file);
  return read_file(file, std::max(begin, end > limit ? end - limit : 0));
}

std::uintmax_t file_size_or_zero(const std::filesystem::path& file) {
  std::error_code missing;
  const auto size = std::filesystem::file_size(file, missing);
  return missing ? 0 : size;
}

}  // namespace fencepost
