// Reading small files whole. Not by std::ifstream's buffer: that throws when a read fails half-way, whatever the
// stream's exception mask says, and under /proc a read fails whenever the process has just ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace fencepost {

// As much as could be read from `begin` on: nothing of a file that is missing, unreadable, or whose process is gone.
std::string read_file(const std::filesystem::path& file, std::uintmax_t begin = 0);

// The last `limit` bytes of what was written since `begin`: what a program's log says about its end.
std::string read_tail(const std::filesystem::path& file, std::uintmax_t begin, std::size_t limit);

// 0 when there is none.
std::uintmax_t file_size_or_zero(const std::filesystem::path& file);

}  // namespace fencepost
