// Random bytes, injected so that tests control them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace fencepost {

class Random {
 public:
  virtual ~Random() = default;

  virtual void fill(std::span<std::byte> out) = 0;

  // 64 fresh bits.
  std::uint64_t next();
  // In [0, 1), with 53 bits of precision.
  double uniform();
};

// The operating system's generator, through OpenSSL: suitable for keys and codes. Any thread may call.
// Throws Exception "random_unavailable" when the system has no entropy.
class SystemRandom final : public Random {
 public:
  void fill(std::span<std::byte> out) override;
};

// The same seed gives the same bytes on every machine. For tests and jitter, never for secrets. Not thread-safe.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}

  void fill(std::span<std::byte> out) override;

 private:
  std::mt19937_64 engine_;
};

}  // namespace fencepost
