#include "base/random.hpp"

#include <algorithm>
#include <limits>

#include <openssl/rand.h>

#include "base/error.hpp"

namespace fencepost {

std::uint64_t Random::next() {
  std::array<std::byte, 8> bytes;
  fill(bytes);
  std::uint64_t value = 0;
  for (const auto byte : bytes) value = value << 8 | std::to_integer<std::uint64_t>(byte);
  return value;
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

void SystemRandom::fill(std::span<std::byte> out) {
  while (!out.empty()) {
    const auto chunk = std::min<std::size_t>(out.size(), std::numeric_limits<int>::max());
    if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(chunk)) != 1) {
      throw Exception(internal("random_unavailable", "the system's random generator gave no bytes"));
    }
    out = out.subspan(chunk);
  }
}

void SeededRandom::fill(std::span<std::byte> out) {
  while (!out.empty()) {
    auto word = engine_();
    const auto chunk = std::min(out.size(), sizeof word);
    for (std::size_t i = 0; i < chunk; ++i, word >>= 8) out[i] = static_cast<std::byte>(word & 0xff);
    out = out.subspan(chunk);
  }
}

}  // namespace fencepost
