#include "evm/keys/private_key.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <secp256k1_recovery.h>

#include "base/hex.hpp"
#include "evm/keys/ecdsa.hpp"

namespace fencepost::evm {
namespace {

Error bad_private_key(const char* reason) {
  return invalid("bad_private_key", reason);
}

}  // namespace

Result<PrivateKey> PrivateKey::checked(std::unique_ptr<Bytes32> bytes) {
  secp256k1_pubkey point;
  if (secp256k1_ec_pubkey_create(ecdsa_context(), &point, bytes->bytes.data()) != 1) {
    return fail(bad_private_key("a private key must be over zero and under the order of the group"));
  }
  const auto address = address_of(point);
  return PrivateKey(std::move(bytes), address);
}

Result<PrivateKey> PrivateKey::from_bytes(std::span<const std::uint8_t> bytes) {
  auto own = std::make_unique<Bytes32>();
  if (bytes.size() != own->bytes.size()) return fail(bad_private_key("a private key must have 32 bytes"));
  std::ranges::copy(bytes, own->bytes.begin());
  return checked(std::move(own));
}

Result<PrivateKey> PrivateKey::from_hex(const Secret& hex) {
  auto digits = hex.reveal();
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  auto own = std::make_unique<Bytes32>();
  // Do not pass on the decoder's message, which quotes a digit of the key.
  if (!decode_hex(digits, own->bytes)) return fail(bad_private_key("a private key must be 64 hex digits"));
  return checked(std::move(own));
}

PrivateKey PrivateKey::generate(Random& random) {
  // One value in 2^128 is out of range: several in a row mean that the random source is broken.
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    auto own = std::make_unique<Bytes32>();
    random.fill(std::as_writable_bytes(std::span(own->bytes)));
    if (auto key = checked(std::move(own))) return *std::move(key);
  }
  throw Exception(internal("random_unavailable", "the random source returns no valid key"));
}

Signature PrivateKey::sign(const Hash32& hash) const {
  const auto* context = ecdsa_context();
  secp256k1_ecdsa_recoverable_signature made;
  std::array<std::uint8_t, 64> compact;
  int recovery_id = 0;
  if (secp256k1_ecdsa_sign_recoverable(context, &made, hash.data(), bytes_->bytes.data(), nullptr, nullptr) != 1) {
    throw Exception(internal("cannot_sign", "libsecp256k1 cannot sign"));
  }
  secp256k1_ecdsa_recoverable_signature_serialize_compact(context, compact.data(), &recovery_id, &made);
  // 2 and 3 mean that x was over the group's order (one in 2^127), which Ethereum's format cannot express.
  if (recovery_id > 1) throw Exception(internal("cannot_sign", "Ethereum's format cannot express the signature"));

  Signature signature;
  std::copy_n(compact.begin(), 32, signature.r.begin());
  std::copy_n(compact.begin() + 32, 32, signature.s.begin());
  signature.y_parity = recovery_id == 1;
  return signature;
}

SignedTransaction sign_transaction(const PrivateKey& key, const Transaction& transaction) {
  return assemble(transaction, key.sign(signing_hash(transaction)));
}

}  // namespace fencepost::evm
