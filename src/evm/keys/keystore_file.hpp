// Key files on disk.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"
#include "evm/keys/keystore.hpp"

namespace fencepost::evm {

// Opens a key file. Errors: those of decrypt_keystore, and kInvalid `cannot_read_keystore` with the reason. Blocks.
Result<PrivateKey> read_keystore(const std::filesystem::path& file, const Secret& password);

// Writes a new key file atomically, mode 0600, named as geth does (UTC--<when>--<address>), and returns its path.
// Creates a missing directory (0700). Errors: kConflict `keystore_exists` when the directory already has a file with
// this address in its name, which must not be overwritten. Blocks.
Result<std::filesystem::path> write_keystore(const std::filesystem::path& directory, const PrivateKey& key,
                                             const Secret& password, const Clock& clock, Random& random,
                                             const KdfCost& cost = {});

// The key files of a directory, sorted by name: all regular files except hidden ones, editors' backups (~) and
// unfinished ones (.new). Errors: kInvalid `cannot_read_keystore` when the directory cannot be read.
Result<std::vector<std::filesystem::path>> keystore_files(const std::filesystem::path& directory);

}  // namespace fencepost::evm
