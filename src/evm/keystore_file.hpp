// Key files on disk.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"
#include "evm/keystore.hpp"

namespace fencepost::evm {

// Opens one. The errors of decrypt_keystore, and kInvalid `cannot_read_keystore` with the reason. Blocks.
Result<PrivateKey> read_keystore(const std::filesystem::path& file, const Secret& password);

// Writes a new one, mode 0600, whole or not at all, under geth's name for it (UTC--<when>--<address>), and tells where.
// The directory is made when it is not there (0700). kConflict `keystore_exists` when the directory has a file for this
// address already, by that name: a second one would only confuse, and the key in the first must not be lost. Blocks.
Result<std::filesystem::path> write_keystore(const std::filesystem::path& directory, const PrivateKey& key,
                                             const Secret& password, const Clock& clock, Random& random,
                                             const KdfCost& cost = {});

// The files of a directory that are meant to be key files, by name: all regular ones but hidden ones, editors' backups
// (~) and half-written ones (.new). kInvalid `cannot_read_keystore` when the directory cannot be read.
Result<std::vector<std::filesystem::path>> keystore_files(const std::filesystem::path& directory);

}  // namespace fencepost::evm
