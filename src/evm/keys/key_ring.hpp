// The signers of a node, by address.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/secret.hpp"
#include "evm/keys/private_key.hpp"
#include "evm/keys/signer.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::evm {

// One thread adds all keys before the node's loops use the ring; after that any thread may look up. Each address has
// one signer: a second key is kConflict `duplicate_signer`, since it is a configuration mistake. A failed add leaves
// the ring unchanged. The runtime must outlive the ring.
class KeyRing {
 public:
  explicit KeyRing(Runtime& runtime) : runtime_(runtime) {}

  Result<void> add(std::unique_ptr<Signer> signer);
  Result<void> add(PrivateKey key);

  // Adds plain keys in hex. Requires: the caller has checked that this is a development node. An error names the key by
  // its position in the list, starting at 1, and contains nothing of the key.
  Result<void> add_dev_keys(std::span<const Secret> keys);

  // Opens every key file of the directory (see keystore_files) with one password. Returns the number of keys; 0 when
  // there are no files. BLOCKS: each file takes about a second and 256 MiB at the usual cost, so call it before the
  // loops start, or from Runtime::offload. Tries all files; when any fails, adds none and returns one error that names
  // each failed file with its reason:
  //   kInvalid `bad_keystore`, `wrong_password`, `unsupported_keystore`, `cannot_read_keystore` (the code of the first)
  //   kConflict `duplicate_signer`
  Result<std::size_t> load_keystores(const std::filesystem::path& directory, const Secret& password);

  // nullptr when this node has no key for the address. Requires: stored form, lowercase with 0x.
  Signer* find(std::string_view address) const;
  // All addresses, sorted.
  std::vector<std::string> addresses() const;
  std::size_t size() const { return signers_.size(); }

 private:
  Runtime& runtime_;
  std::map<std::string, std::unique_ptr<Signer>, std::less<>> signers_;
};

}  // namespace fencepost::evm
