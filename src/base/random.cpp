#include "base/random.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <openssl/crypto.h>
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

namespace {

void generate(std::span<std::byte> out) {
  while (!out.empty()) {
    const auto chunk = std::min<std::size_t>(out.size(), std::numeric_limits<int>::max());
    if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(chunk)) != 1) {
      throw Exception(internal("random_unavailable", "the system's random generator gave no bytes"));
    }
    out = out.subspan(chunk);
  }
}

// A call of OpenSSL's generator costs about a microsecond however little is asked of it, and each request needs several
// ids. So each thread generates a block and hands it out in pieces, each byte once.
class Block {
 public:
  bool holds(std::size_t size) const { return size <= bytes_.size(); }
  void take(std::span<std::byte> out) {
    if (left_ < out.size()) {
      generate(bytes_);
      left_ = bytes_.size();
    }
    left_ -= out.size();
    const auto piece = std::span(bytes_).subspan(left_, out.size());
    std::ranges::copy(piece, out.begin());
    OPENSSL_cleanse(piece.data(), piece.size());
  }

 private:
  std::array<std::byte, 512> bytes_{};
  std::size_t left_ = 0;
};

}  // namespace

void SystemRandom::fill(std::span<std::byte> out) {
  thread_local Block block;
  if (block.holds(out.size())) {
    block.take(out);
  } else {
    generate(out);
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
