#include "outbox/webhook/parcel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

Parcel parcel(std::vector<std::pair<std::int64_t, std::string>> events) {
  Parcel out;
  for (auto& [seq, subject] : events) out.events.push_back({.seq = seq, .subject = subject, .envelope = "{}"});
  return out;
}

std::vector<std::int64_t> ready(ParcelQueue& queue) {
  std::vector<std::int64_t> out;
  for (const auto place : queue.ready()) out.push_back(place->first_seq());
  return out;
}

TEST(ParcelQueue, a_parcel_holds_back_later_ones_of_its_subject_only) {
  ParcelQueue queue;
  queue.add(parcel({{3, "b"}}));
  queue.add(parcel({{1, "a"}}));
  queue.add(parcel({{2, "a"}}));
  EXPECT_THAT(ready(queue), ElementsAre(1, 3));
  queue.remove(queue.ready()[0]);
  EXPECT_THAT(ready(queue), ElementsAre(2, 3));
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_TRUE(queue.has_subject("a"));
  queue.remove(queue.ready()[0]);
  EXPECT_FALSE(queue.has_subject("a"));
}

TEST(ParcelQueue, a_batch_waits_for_all_its_subjects_and_holds_all_of_them_back) {
  ParcelQueue queue;
  queue.add(parcel({{1, "a"}}));
  queue.add(parcel({{2, "b"}, {3, "a"}}));
  queue.add(parcel({{4, "b"}}));
  queue.add(parcel({{5, "c"}}));
  EXPECT_THAT(ready(queue), ElementsAre(1, 5));
}

TEST(WebhookRetry, begins_at_about_five_seconds_and_doubles_up_to_the_cap) {
  SeededRandom random(7);
  const WebhookOptions options;
  for (int i = 0; i < 100; ++i) {
    EXPECT_NEAR(static_cast<double>(retry_delay(1, {}, options, random).count()), 5000, 1000);
    EXPECT_NEAR(static_cast<double>(retry_delay(3, {}, options, random).count()), 20'000, 4000);
    EXPECT_LE(retry_delay(50, {}, options, random), options.retry_cap * 6 / 5);
    EXPECT_EQ(retry_delay(1, 1min, options, random), 1min);
  }
}

TEST(parcel_queue, knows_the_events_that_wait) {
  ParcelQueue queue;
  queue.add({.message = "m", .events = {{.seq = 3}, {.seq = 7}}});
  EXPECT_TRUE(queue.has(3));
  EXPECT_TRUE(queue.has(7));
  EXPECT_FALSE(queue.has(5));
}

}  // namespace
}  // namespace fencepost::outbox
