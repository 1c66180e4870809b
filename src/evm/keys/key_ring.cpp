#include "evm/keys/key_ring.hpp"

#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "evm/address.hpp"
#include "evm/keys/keystore_file.hpp"
#include "evm/keys/local_signer.hpp"

namespace fencepost::evm {
namespace {

constexpr std::size_t kShownFiles = 20;

Error duplicate(std::string_view address) {
  return conflict("duplicate_signer", fmt::format("there are two keys for {}; remove one", address));
}

// Collects the errors of several files into one error.
class BadFiles {
 public:
  void add(const std::filesystem::path& file, const Error& error) {
    ++count_;
    if (!error_) error_ = Error{error.kind, error.code, "", {}, {}};
    if (count_ > kShownFiles) return;
    if (!error_->message.empty()) error_->message += "; ";
    error_->message += fmt::format("{}: {}", file.string(), error.message);
  }
  std::optional<Error> take() && {
    if (count_ > kShownFiles) error_->message += fmt::format("; and {} more", count_ - kShownFiles);
    return std::move(error_);
  }

 private:
  std::size_t count_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<void> KeyRing::add(std::unique_ptr<Signer> signer) {
  const auto address = signer->address();
  if (!signers_.try_emplace(address, std::move(signer)).second) return fail(duplicate(address));
  return {};
}

Result<void> KeyRing::add(PrivateKey key) {
  return add(std::make_unique<LocalSigner>(runtime_, std::move(key)));
}

Result<void> KeyRing::add_dev_keys(std::span<const Secret> keys) {
  std::vector<PrivateKey> parsed;
  std::set<Address> seen;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto key = PrivateKey::from_hex(keys[i]);
    if (!key) return fail(invalid(key.error().code, fmt::format("key {}: {}", i + 1, key.error().message)));
    const auto address = address_text(key->address());
    if (!seen.insert(key->address()).second || find(address) != nullptr) return fail(duplicate(address));
    parsed.push_back(*std::move(key));
  }
  for (auto& key : parsed) {
    if (auto added = add(std::move(key)); !added) return added;
  }
  return {};
}

Result<std::size_t> KeyRing::load_keystores(const std::filesystem::path& directory, const Secret& password) {
  const auto files = keystore_files(directory);
  if (!files) return fail(files.error());
  std::vector<PrivateKey> opened;
  std::set<Address> seen;
  BadFiles bad;
  for (const auto& file : *files) {
    auto key = read_keystore(file, password);
    if (!key) {
      bad.add(file.filename(), key.error());
    } else if (const auto address = address_text(key->address());
               !seen.insert(key->address()).second || find(address) != nullptr) {
      bad.add(file.filename(), duplicate(address));
    } else {
      opened.push_back(*std::move(key));
    }
  }
  if (auto error = std::move(bad).take()) return fail(std::move(*error).with("directory", directory.string()));
  for (auto& key : opened) {
    if (auto added = add(std::move(key)); !added) return fail(std::move(added).error());
  }
  return opened.size();
}

Signer* KeyRing::find(std::string_view address) const {
  const auto found = signers_.find(address);
  return found == signers_.end() ? nullptr : found->second.get();
}

std::vector<std::string> KeyRing::addresses() const {
  std::vector<std::string> out;
  out.reserve(signers_.size());
  for (const auto& [address, signer] : signers_) out.push_back(address);
  return out;
}

}  // namespace fencepost::evm
