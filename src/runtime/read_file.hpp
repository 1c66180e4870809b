// Reads small files whole. std::ifstream's buffer is not used because it throws when a read fails half-way, and a read
// under /proc fails whenever the process has just ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace fencepost {

// Returns the text from `begin` on, as far as it can be read; empty when the file is missing or unreadable.
std::string read_file(const std::filesystem::path& file, std::uintmax_t begin = 0);

// Returns the last `limit` bytes after `begin`, such as the end of a failed program's log.
std::string read_tail(const std::filesystem::path& file, std::uintmax_t begin, std::size_t limit);

// Returns 0 when there is no such file.
std::uintmax_t file_size_or_zero(const std::filesystem::path& file);

}  // namespace fencepost
