// The API key of `fencepost up`: created once and stored in the data directory, so that every start uses the same key.
#pragma once

#include <filesystem>

#include "base/error.hpp"
#include "base/secret.hpp"
#include "pg/pool.hpp"

namespace fencepost {

// Reads the key file, or creates it with a new key if it does not exist. Mode 0600.
Result<Secret> read_or_make_dev_key(const std::filesystem::path& file);

// Makes sure that the key is in the database, with scope admin.
awaitable<> ensure_dev_key(pg::Pool& pool, const Secret& text);

}  // namespace fencepost
