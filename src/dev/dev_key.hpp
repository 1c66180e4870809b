// The API key of `fencepost up`: made once, kept in the data directory, the same from start to start.
#pragma once

#include <filesystem>

#include "base/error.hpp"
#include "base/secret.hpp"
#include "pg/pool.hpp"

namespace fencepost {

// Reads the file, or makes it with a new key when it is not there. Mode 0600.
Result<Secret> read_or_make_dev_key(const std::filesystem::path& file);

// Makes sure that the database knows the key, with scope admin.
awaitable<> ensure_dev_key(pg::Pool& pool, const Secret& text);

}  // namespace fencepost
