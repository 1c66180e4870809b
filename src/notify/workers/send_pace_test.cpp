#include "notify/workers/send_pace.hpp"

#include <gtest/gtest.h>

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;

TEST(send_pace, lets_a_burst_pass_and_then_keeps_the_rate) {
  SendPace pace(100, 1000);
  const SendPace::Time start(1h);
  int sent = 0;
  for (auto now = start; now < start + 10s; now += 1ms) {
    for (auto free = pace.free_places(now); free > 0; --free) {
      if (pace.take("a.org", now) == 0ms) ++sent;
    }
  }
  EXPECT_NEAR(sent, 1100, 3) << "10 s, and the burst of one more";
  EXPECT_EQ(pace.free_places(start + 10s - 1ms), 0U);
  EXPECT_LE(pace.next_place(), start + 10s + 10ms);
}

TEST(send_pace, slows_down_one_domain_and_no_other) {
  SendPace pace(1000, 10);
  const SendPace::Time now(1h);
  for (int i = 0; i < 11; ++i) EXPECT_EQ(pace.take("slow.org", now), 0ms) << i;
  EXPECT_EQ(pace.take("slow.org", now), 100ms);
  EXPECT_EQ(pace.take("other.org", now), 0ms);
  EXPECT_EQ(pace.take("slow.org", now + 100ms), 0ms);
}

// Otherwise all of them would be looked at again and again.
TEST(send_pace, mails_that_are_put_off_form_a_line) {
  SendPace pace(1000, 10);
  const SendPace::Time now(1h);
  while (pace.take("slow.org", now) == 0ms) {
  }
  EXPECT_EQ(pace.take("slow.org", now), 200ms);
  EXPECT_EQ(pace.take("slow.org", now), 300ms);
  EXPECT_EQ(pace.take("slow.org", now + 100ms), 0ms) << "the first of them";
  EXPECT_EQ(pace.take("slow.org", now + 200ms), 0ms);
}

TEST(send_pace, a_mail_that_is_put_off_takes_no_place_of_the_node) {
  SendPace pace(10, 1);
  const SendPace::Time now(1h);
  while (pace.take("slow.org", now) == 0ms) {
  }
  const auto free = pace.free_places(now);
  EXPECT_GT(pace.take("slow.org", now), 0ms);
  EXPECT_EQ(pace.free_places(now), free);
}

}  // namespace
}  // namespace fencepost::notify
