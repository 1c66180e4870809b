// One owner per directory: a data directory must not be used by two processes at once.
#pragma once

#include <filesystem>

#include "base/error.hpp"
#include "runtime/unique_fd.hpp"

namespace fencepost {

// Locks `directory`/lock. The directory is the caller's until the descriptor is closed, which the kernel does when
// the process ends, however it ends. Fails with `data_dir_in_use`, naming the holder's pid, or `data_dir_unusable`.
Result<UniqueFd> lock_directory(const std::filesystem::path& directory);

}  // namespace fencepost
