// One owner per directory: a data directory must not be used by two processes at once.
#pragma once

#include <filesystem>

#include "base/error.hpp"
#include "runtime/unique_fd.hpp"

namespace fencepost {

// Locks `directory`/lock. The caller holds the lock until it closes the descriptor; the kernel closes it when the
// process ends, also by a crash. Fails with `data_dir_in_use`, naming the holder's pid, or with `data_dir_unusable`.
Result<UniqueFd> lock_directory(const std::filesystem::path& directory);

}  // namespace fencepost
