// The text of a key file: Web3 Secret Storage, version 3, as geth, cast and most wallets write it. Only finds, checks
// and bounds the fields; keystore.hpp uses them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.hpp"
#include "base/hex.hpp"
#include "base/uuid.hpp"
#include "evm/transaction.hpp"

namespace fencepost::evm {

// The defaults are geth's: about a second and 256 MiB for each attempt.
struct ScryptCost {
  std::uint64_t n = 262'144;
  std::uint64_t r = 8;
  std::uint64_t p = 1;
};
struct Pbkdf2Cost {
  std::uint64_t c = 262'144;
};
using KdfCost = std::variant<ScryptCost, Pbkdf2Cost>;

struct KeystoreJson {
  std::optional<std::string> address;  // stored form; some files have none
  KdfCost cost;
  Bytes salt;
  std::array<std::uint8_t, 16> iv{};
  Bytes ciphertext;  // 1 to 32 bytes: early wallets left out the leading zeros of a key
  Hash32 mac{};
};

inline constexpr std::size_t kMaxKeystoreBytes = 64 * 1024;
// Bounds, so that a hostile file cannot use all memory or minutes of time.
inline constexpr std::uint64_t kMaxScryptMemory = 512ull * 1024 * 1024;
inline constexpr std::uint64_t kMaxScryptWork = 1 << 25;  // n × r × p; the default is 2^21
inline constexpr std::uint64_t kMaxPbkdf2Rounds = 10'000'000;

// Checks that the cost is valid and within the bounds above. Errors: kInvalid `unsupported_keystore`.
Result<void> check_cost(const KdfCost& cost);

// Compares names case-insensitively, as geth does: old files have "Crypto". Hex digits may start with 0x. Errors,
// kInvalid: `bad_keystore` when the text is not a key file, `unsupported_keystore` for another version, cipher or key
// derivation, or for a cost over the bounds.
Result<KeystoreJson> parse_keystore(std::string_view text);

std::string keystore_text(const KeystoreJson& keystore, const Uuid& id);

}  // namespace fencepost::evm
