// Bytes that the destructor overwrites. Neither copied nor moved, so that no copy stays in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <openssl/crypto.h>

namespace fencepost::evm {

template <std::size_t N>
struct Wiped {
  std::array<std::uint8_t, N> bytes{};

  Wiped() = default;
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  ~Wiped() { OPENSSL_cleanse(bytes.data(), N); }
};

}  // namespace fencepost::evm
