// A file that only its owner may read, replaced atomically.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.hpp"

namespace fencepost {

// Writes a new file of mode 0600 in the same directory and renames it to `file`, so that a reader sees the old text or
// the new text, also after a power loss. Fails with kInternal `cannot_write` and the reason. Blocks.
Result<void> write_private_file(const std::filesystem::path& file, std::string_view text);

}  // namespace fencepost
