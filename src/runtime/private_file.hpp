// A file that only its owner may read, written whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.hpp"

namespace fencepost {

// Writes a new file of mode 0600 beside it and renames it over, so that a reader sees the old text or the new one,
// also after a loss of power. kInternal `cannot_write` with the reason. Blocks.
Result<void> write_private_file(const std::filesystem::path& file, std::string_view text);

}  // namespace fencepost
