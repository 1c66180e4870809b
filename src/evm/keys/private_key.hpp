// A secp256k1 private key. Its bytes are in one place on the heap and are wiped by the destructor. They leave only into
// a keystore; there is no way to print the key.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"
#include "evm/keys/wiped.hpp"
#include "evm/transaction.hpp"

namespace fencepost::evm {

class PrivateKey {
 public:
  // Copies the bytes; the caller must still wipe its own. Errors: kInvalid `bad_private_key` unless there are 32 bytes
  // with a number from 1 to the order of the group less one. No error contains anything of the key.
  static Result<PrivateKey> from_bytes(std::span<const std::uint8_t> bytes);
  // From 64 hex digits, with or without 0x. Errors: kInvalid `bad_private_key`.
  static Result<PrivateKey> from_hex(const Secret& hex);
  // A new random key. Throws Exception "random_unavailable" when the random source is broken.
  static PrivateKey generate(Random& random);

  PrivateKey(PrivateKey&&) noexcept = default;
  PrivateKey& operator=(PrivateKey&&) noexcept = default;
  PrivateKey(const PrivateKey&) = delete;
  PrivateKey& operator=(const PrivateKey&) = delete;
  ~PrivateKey() = default;

  const Address& address() const { return address_; }
  // The same hash always gets the same signature (RFC 6979), with S in the lower half. Any thread may call.
  Signature sign(const Hash32& hash) const;

  // The only access to the bytes. The view is valid as long as the key; never put it in a message.
  std::span<const std::uint8_t, 32> reveal() const { return bytes_->bytes; }

 private:
  using Bytes32 = Wiped<32>;

  PrivateKey(std::unique_ptr<Bytes32> bytes, const Address& address) : bytes_(std::move(bytes)), address_(address) {}
  static Result<PrivateKey> checked(std::unique_ptr<Bytes32> bytes);

  std::unique_ptr<Bytes32> bytes_;  // moved, never copied, so that no copy stays in memory
  Address address_;
};

// Signs with this key; the sender is the key's address.
SignedTransaction sign_transaction(const PrivateKey& key, const Transaction& transaction);

}  // namespace fencepost::evm
