#include "evm/keys/keystore.hpp"

#include <algorithm>
#include <memory>

#include <cryptopp/scrypt.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "evm/address.hpp"
#include "evm/keccak.hpp"
#include "evm/keys/wiped.hpp"

namespace fencepost::evm {
namespace {

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

[[noreturn]] void crypto_failed(const char* what) {
  throw Exception(internal("crypto_failed", fmt::format("{} failed", what)));
}

void derive_scrypt(const ScryptCost& cost, std::string_view password, const Bytes& salt, Wiped<32>& out) {
  // OpenSSL enforces n < 2^(16 r) (RFC 7914). Wallets do not: even the test vector of the format's specification has
  // n = 2^18 with r = 1.
  if (cost.r < 4 && cost.n >= std::uint64_t{1} << (16 * cost.r)) {
    CryptoPP::Scrypt().DeriveKey(out.bytes.data(), out.bytes.size(),
                                 reinterpret_cast<const CryptoPP::byte*>(password.data()), password.size(), salt.data(),
                                 salt.size(), cost.n, cost.r, cost.p);
    return;
  }
  constexpr std::uint64_t kNoFurtherLimit = 2 * kMaxScryptMemory;  // check_cost has already bounded the memory
  if (EVP_PBE_scrypt(password.data(), password.size(), salt.data(), salt.size(), cost.n, cost.r, cost.p,
                     kNoFurtherLimit, out.bytes.data(), out.bytes.size()) != 1) {
    crypto_failed("scrypt");
  }
}

void derive_pbkdf2(const Pbkdf2Cost& cost, std::string_view password, const Bytes& salt, Wiped<32>& out) {
  if (PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()), salt.data(), static_cast<int>(salt.size()),
                        static_cast<int>(cost.c), EVP_sha256(), static_cast<int>(out.bytes.size()),
                        out.bytes.data()) != 1) {
    crypto_failed("PBKDF2");
  }
}

void derive(const KeystoreJson& keystore, const Secret& password, Wiped<32>& out) {
  // An empty Secret may have a null pointer, which not every library accepts.
  const auto text = password.empty() ? std::string_view("") : password.reveal();
  if (const auto* scrypt = std::get_if<ScryptCost>(&keystore.cost)) {
    derive_scrypt(*scrypt, text, keystore.salt, out);
  } else {
    derive_pbkdf2(std::get<Pbkdf2Cost>(keystore.cost), text, keystore.salt, out);
  }
}

// Encrypts or decrypts: in CTR mode both are the same. Requires: `out` is as long as `in`.
void aes_128_ctr(const Wiped<32>& derived, const std::array<std::uint8_t, 16>& iv, std::span<const std::uint8_t> in,
                 std::uint8_t* out) {
  const std::unique_ptr<EVP_CIPHER_CTX, FreeCipher> context(EVP_CIPHER_CTX_new());
  int written = 0;
  if (!context || EVP_EncryptInit_ex(context.get(), EVP_aes_128_ctr(), nullptr, derived.bytes.data(), iv.data()) != 1 ||
      EVP_EncryptUpdate(context.get(), out, &written, in.data(), static_cast<int>(in.size())) != 1 ||
      static_cast<std::size_t>(written) != in.size()) {
    crypto_failed("AES-128-CTR");
  }
}

Hash32 mac_of(const Wiped<32>& derived, const Bytes& ciphertext) {
  Wiped<64> message;
  const auto end = std::copy_n(derived.bytes.begin() + 16, 16, message.bytes.begin());
  std::ranges::copy(ciphertext, end);
  return keccak256(std::span(message.bytes).first(16 + ciphertext.size()));
}

Uuid random_uuid(Random& random) {
  Uuid::Raw raw;
  random.fill(std::as_writable_bytes(std::span(raw)));
  raw[6] = static_cast<std::uint8_t>((raw[6] & 0x0f) | 0x40);  // version 4
  raw[8] = static_cast<std::uint8_t>((raw[8] & 0x3f) | 0x80);
  return Uuid(raw);
}

}  // namespace

Result<PrivateKey> decrypt_keystore(std::string_view text, const Secret& password) {
  const auto keystore = parse_keystore(text);
  if (!keystore) return fail(keystore.error());
  Wiped<32> derived;
  derive(*keystore, password, derived);
  const auto mac = mac_of(derived, keystore->ciphertext);
  if (CRYPTO_memcmp(mac.data(), keystore->mac.data(), mac.size()) != 0) {
    return fail(invalid("wrong_password", "the password does not open this key file (or the file is damaged)"));
  }
  Wiped<32> plain;
  const auto size = keystore->ciphertext.size();
  aes_128_ctr(derived, keystore->iv, keystore->ciphertext, plain.bytes.data() + (plain.bytes.size() - size));
  auto key = PrivateKey::from_bytes(plain.bytes);
  if (!key) return fail(invalid("bad_keystore", "the decrypted content is not a private key"));
  const auto address = address_text(key->address());
  if (keystore->address && *keystore->address != address) {
    return fail(invalid("bad_keystore", fmt::format("the file states the address {}, but its key belongs to {}",
                                                    *keystore->address, address)));
  }
  return key;
}

std::string encrypt_keystore(const PrivateKey& key, const Secret& password, Random& random, const KdfCost& cost) {
  if (auto usable = check_cost(cost); !usable) throw Exception(std::move(usable).error());
  KeystoreJson keystore{.address = address_text(key.address()), .cost = cost, .salt = Bytes(32)};
  random.fill(std::as_writable_bytes(std::span(keystore.salt)));
  random.fill(std::as_writable_bytes(std::span(keystore.iv)));
  Wiped<32> derived;
  derive(keystore, password, derived);
  keystore.ciphertext.resize(32);
  aes_128_ctr(derived, keystore.iv, key.reveal(), keystore.ciphertext.data());
  keystore.mac = mac_of(derived, keystore.ciphertext);
  return keystore_text(keystore, random_uuid(random));
}

}  // namespace fencepost::evm
