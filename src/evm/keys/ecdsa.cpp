#include "evm/keys/ecdsa.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include <openssl/crypto.h>
#include <secp256k1_recovery.h>

#include "base/random.hpp"
#include "evm/keccak.hpp"

namespace fencepost::evm {
namespace {

struct DestroyContext {
  void operator()(secp256k1_context* context) const { secp256k1_context_destroy(context); }
};
using Context = std::unique_ptr<secp256k1_context, DestroyContext>;

Context make_context() {
  Context context(secp256k1_context_create(SECP256K1_CONTEXT_NONE));
  std::array<std::byte, 32> seed;
  SystemRandom().fill(seed);
  const bool blinded =
      secp256k1_context_randomize(context.get(), reinterpret_cast<const unsigned char*>(seed.data())) == 1;
  OPENSSL_cleanse(seed.data(), seed.size());
  if (!blinded) throw Exception(internal("ecdsa_context", "libsecp256k1 cannot blind its context"));
  return context;
}

Error bad_signature(const char* reason) {
  return invalid("bad_signature", reason);
}

}  // namespace

const secp256k1_context* ecdsa_context() {
  static const Context context = make_context();
  return context.get();
}

Address address_of(const secp256k1_pubkey& key) {
  std::array<std::uint8_t, 65> point;  // 0x04, x, y
  std::size_t size = point.size();
  secp256k1_ec_pubkey_serialize(ecdsa_context(), point.data(), &size, &key, SECP256K1_EC_UNCOMPRESSED);
  const auto hash = keccak256(std::span(point).subspan(1));
  Address address;
  std::ranges::copy(std::span(hash).last<20>(), address.begin());
  return address;
}

Result<Address> recover_address(const Hash32& hash, const Signature& signature) {
  constexpr Hash32 kZero{};
  if (signature.r == kZero || signature.s == kZero) return fail(bad_signature("r and s must not be zero"));

  std::array<std::uint8_t, 64> compact;
  std::ranges::copy(signature.r, compact.begin());
  std::ranges::copy(signature.s, compact.begin() + 32);
  const auto* context = ecdsa_context();
  secp256k1_ecdsa_signature plain;
  if (secp256k1_ecdsa_signature_parse_compact(context, &plain, compact.data()) != 1) {
    return fail(bad_signature("r and s must be under the order of the group"));
  }
  if (secp256k1_ecdsa_signature_normalize(context, nullptr, &plain) != 0) {
    return fail(bad_signature("s must be in the lower half (EIP-2)"));
  }
  secp256k1_ecdsa_recoverable_signature recoverable;
  secp256k1_pubkey key;
  if (secp256k1_ecdsa_recoverable_signature_parse_compact(context, &recoverable, compact.data(),
                                                          signature.y_parity ? 1 : 0) != 1 ||
      secp256k1_ecdsa_recover(context, &key, &recoverable, hash.data()) != 1) {
    return fail(bad_signature("the signature does not recover to any key"));
  }
  return address_of(key);
}

}  // namespace fencepost::evm
