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
#include "evm/private_key.hpp"
#include "evm/signer.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::evm {

// Filled by one thread before the node's loops use it, and never changed afterwards: then any thread may look. Each
// address has one signer; a second is kConflict `duplicate_signer`, since two keys of one address cannot be told apart
// and one listed twice is a mistake. What fails to be added leaves the ring as it was. The runtime must outlive it.
class KeyRing {
 public:
  explicit KeyRing(Runtime& runtime) : runtime_(runtime) {}

  Result<void> add(std::unique_ptr<Signer> signer);
  Result<void> add(PrivateKey key);

  // Plain keys in hex: for development only, which the caller has checked. The error says which one is wrong by its
  // place in the list, the first being 1, and nothing of the key.
  Result<void> add_dev_keys(std::span<const Secret> keys);

  // Opens every key file of the directory (keystore_file.hpp says which those are) with one password. BLOCKS for about
  // a second and 256 MiB for each file at the usual cost: call it before the loops start, or from Runtime::offload.
  // Gives the number of keys; 0 when there are no files. All files are tried; one error names each that does not open,
  // with its reason, and then none is added:
  //   kInvalid `bad_keystore`, `wrong_password`, `unsupported_keystore`, `cannot_read_keystore` (the code of the first)
  //   kConflict `duplicate_signer`
  Result<std::size_t> load_keystores(const std::filesystem::path& directory, const Secret& password);

  // nullptr when this node has no key for it. Stored form only: lowercase with 0x.
  Signer* find(std::string_view address) const;
  // In order.
  std::vector<std::string> addresses() const;
  std::size_t size() const { return signers_.size(); }

 private:
  Runtime& runtime_;
  std::map<std::string, std::unique_ptr<Signer>, std::less<>> signers_;
};

}  // namespace fencepost::evm
