#include "base/uuid.hpp"

#include <thread>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

namespace fencepost {
namespace {

using std::chrono::milliseconds;

TEST(uuid, parses_the_canonical_form_in_either_case) {
  const auto lower = Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8057");
  ASSERT_TRUE(lower.has_value());
  EXPECT_EQ(lower->to_string(), "01890a5d-ac96-774b-bcce-b302099a8057");
  EXPECT_EQ(Uuid::parse("01890A5D-AC96-774B-BCCE-B302099A8057"), lower);
  EXPECT_EQ(lower->version(), 7);
  EXPECT_EQ(lower->bytes()[0], 0x01);
  EXPECT_EQ(lower->bytes()[15], 0x57);
  EXPECT_EQ(Uuid::parse("00000000-0000-0000-0000-000000000000"), Uuid());
}

TEST(uuid, refuses_everything_else) {
  for (const std::string_view text : {
           "",
           "01890a5dac96774bbcceb302099a8057",
           "{01890a5d-ac96-774b-bcce-b302099a8057}",
           "01890a5d-ac96-774b-bcce-b302099a805",
           "01890a5d-ac96-774b-bcce-b302099a80577",
           "01890a5d-ac96-774b-bcce_b302099a8057",
           "01890a5-dac96-774b-bcce-b302099a8057",
           "01890a5g-ac96-774b-bcce-b302099a8057",
           " 1890a5d-ac96-774b-bcce-b302099a8057",
           "0x890a5d-ac96-774b-bcce-b302099a8057",
       }) {
    const auto result = Uuid::parse(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().code, "bad_uuid") << text;
  }
  EXPECT_EQ(Uuid::parse("x\n").error().message,
            "expected a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057, got \"x\\n\"");
}

TEST(uuid, carries_time_version_and_variant) {
  ManualClock clock(TimePoint{milliseconds{0x01890a5dac96}});
  SeededRandom random(1);
  UuidGenerator generator(clock, random);
  for (int i = 0; i < 1000; ++i) {
    const auto uuid = generator.next();
    EXPECT_TRUE(uuid.to_string().starts_with("01890a5d-ac96-7")) << uuid.to_string();
    EXPECT_EQ(uuid.bytes()[8] >> 6, 0b10) << uuid.to_string();
  }
}

TEST(uuid, grows_within_a_millisecond_and_when_the_clock_steps_back) {
  ManualClock clock(TimePoint{milliseconds{1'700'000'000'000}});
  SeededRandom random(2);
  UuidGenerator generator(clock, random);
  auto last = generator.next();
  const auto expect_growth = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const auto next = generator.next();
      ASSERT_LT(last, next);
      ASSERT_LT(last.to_string(), next.to_string());
      last = next;
    }
  };
  expect_growth(10'000);
  clock.advance(milliseconds{-5000});
  expect_growth(1000);
  clock.advance(milliseconds{5001});
  expect_growth(1000);
  EXPECT_TRUE(last.to_string().starts_with(fmt::format("{:012x}", 1'700'000'000'001).insert(8, "-")));
}

// Every bit set, so that the first step overflows the lower part.
class AllOnes final : public Random {
 public:
  void fill(std::span<std::byte> out) override { std::ranges::fill(out, std::byte{0xff}); }
};

TEST(uuid, carries_over_when_the_low_bits_are_full) {
  ManualClock clock(TimePoint{milliseconds{1000}});
  AllOnes random;
  UuidGenerator generator(clock, random);
  auto last = generator.next();
  EXPECT_EQ(last.to_string(), "00000000-03e8-77ff-bfff-ffffffffffff");
  for (int i = 0; i < 5000; ++i) {
    const auto next = generator.next();
    ASSERT_LT(last, next);
    ASSERT_EQ(next.version(), 7);
    last = next;
  }
}

TEST(uuid, works_when_the_clock_is_before_the_epoch) {
  ManualClock clock(TimePoint{milliseconds{-1}});
  SeededRandom random(3);
  UuidGenerator generator(clock, random);
  const auto first = generator.next();
  EXPECT_TRUE(first.to_string().starts_with("00000000-0000-7"));
  EXPECT_LT(first, generator.next());
}

TEST(uuid, threads_never_get_the_same_id) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 5000;
  SystemClock clock;
  SystemRandom random;
  UuidGenerator generator(clock, random);
  std::vector<std::vector<Uuid>> made(kThreads);
  {
    std::vector<std::jthread> threads;
    threads.reserve(made.size());
    for (auto& mine : made) {
      threads.emplace_back([&mine, &generator] {
        for (std::size_t i = 0; i < kEach; ++i) mine.push_back(generator.next());
      });
    }
  }
  std::unordered_set<Uuid> all;
  for (const auto& mine : made) {
    EXPECT_TRUE(std::ranges::is_sorted(mine));
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all.size(), kThreads * kEach);
}

}  // namespace
}  // namespace fencepost
