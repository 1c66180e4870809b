// A secp256k1 private key. Its bytes live in one place on the heap, are wiped when it dies, and never leave but into
// a keystore: there is no way to print it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"
#include "evm/transaction.hpp"
#include "evm/wiped.hpp"

namespace fencepost::evm {

class PrivateKey {
 public:
  // Copies; whoever owns the bytes must still wipe them. kInvalid `bad_private_key` unless they are 32 and a number
  // from 1 to the order of the group less one. No error here contains anything of the key.
  static Result<PrivateKey> from_bytes(std::span<const std::uint8_t> bytes);
  // 64 hex digits, with or without 0x.
  static Result<PrivateKey> from_hex(const Secret& hex);
  // A new one.
  static PrivateKey generate(Random& random);

  PrivateKey(PrivateKey&&) noexcept = default;
  PrivateKey& operator=(PrivateKey&&) noexcept = default;
  PrivateKey(const PrivateKey&) = delete;
  PrivateKey& operator=(const PrivateKey&) = delete;
  ~PrivateKey() = default;

  const Address& address() const { return address_; }
  // The same hash always gets the same signature (RFC 6979), with S in the lower half. Any thread may call.
  Signature sign(const Hash32& hash) const;

  // The only way out. The view dies with the key; never put it in a message.
  std::span<const std::uint8_t, 32> reveal() const { return bytes_->bytes; }

 private:
  using Bytes32 = Wiped<32>;

  PrivateKey(std::unique_ptr<Bytes32> bytes, const Address& address) : bytes_(std::move(bytes)), address_(address) {}
  static Result<PrivateKey> checked(std::unique_ptr<Bytes32> bytes);

  std::unique_ptr<Bytes32> bytes_;  // moved, never copied, so that no copy stays behind
  Address address_;
};

// Signed with this key; its sender is the key's address.
SignedTransaction sign_transaction(const PrivateKey& key, const Transaction& transaction);

}  // namespace fencepost::evm
