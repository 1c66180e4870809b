#include "base/random.hpp"

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fencepost {
namespace {

TEST(random, the_same_seed_gives_the_same_bytes) {
  SeededRandom a(7);
  SeededRandom b(7);
  SeededRandom c(8);
  std::array<std::byte, 37> from_a;
  std::array<std::byte, 37> from_b;
  std::array<std::byte, 37> from_c;
  a.fill(from_a);
  b.fill(from_b);
  c.fill(from_c);
  EXPECT_EQ(from_a, from_b);
  EXPECT_NE(from_a, from_c);
}

TEST(random, a_seeded_sequence_is_the_one_the_standard_prescribes) {
  // The 10000th output of a default mt19937_64 is fixed by the standard, so seeds mean the same everywhere.
  SeededRandom random(std::mt19937_64::default_seed);
  std::vector<std::byte> skipped(9999 * 8);
  random.fill(skipped);
  std::array<std::byte, 8> last;
  random.fill(last);
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(last[i]);
  EXPECT_EQ(value, 9981545732273789042ULL);
}

TEST(random, uniform_stays_in_range_and_spreads) {
  SeededRandom random(1);
  double sum = 0;
  constexpr int kDraws = 10'000;
  for (int i = 0; i < kDraws; ++i) {
    const auto u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.02);
}

TEST(random, the_system_fills_every_byte) {
  // Each of the 64 bytes must differ from 0 at least once in 64 rounds. A byte stays 0 by chance once in 256^64 runs.
  SystemRandom random;
  std::array<bool, 64> touched{};
  for (int round = 0; round < 64; ++round) {
    std::array<std::byte, 64> bytes{};
    random.fill(bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) touched[i] = touched[i] || bytes[i] != std::byte{0};
  }
  for (const auto t : touched) EXPECT_TRUE(t);
  random.fill({});
}

// Small requests are pieces of a block that each thread generates for itself.
TEST(random, the_system_hands_out_no_byte_twice) {
  constexpr std::size_t kEach = 2'000;
  std::vector<std::uint64_t> drawn(2 * kEach);
  const auto draw = [&](std::size_t from) {
    for (std::size_t i = from; i < from + kEach; ++i) drawn[i] = SystemRandom().next();
  };
  std::thread other(draw, kEach);
  draw(0);
  other.join();
  std::ranges::sort(drawn);
  EXPECT_EQ(std::ranges::adjacent_find(drawn), drawn.end());  // equal by chance once in 2^41 runs
}

}  // namespace
}  // namespace fencepost
