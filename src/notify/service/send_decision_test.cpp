#include "notify/service/send_decision.hpp"

#include <gtest/gtest.h>

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;

SendDecision after(SendResult result, std::int64_t failures = 0, std::chrono::milliseconds age = 0ms) {
  SeededRandom random(1);
  return decide({.result = result, .detail = "what the server said"}, failures, age, {}, random);
}

TEST(send_decision, follows_the_answer) {
  EXPECT_EQ(after(SendResult::kSent).status, SendStatus::kSuccess);
  EXPECT_EQ(after(SendResult::kRefused).status, SendStatus::kDead);
  EXPECT_FALSE(after(SendResult::kRefused).unknown_address);
  EXPECT_EQ(after(SendResult::kUnknownAddress).status, SendStatus::kDead);
  EXPECT_TRUE(after(SendResult::kUnknownAddress).unknown_address);
  EXPECT_EQ(after(SendResult::kNotSent).status, SendStatus::kFailed);
  EXPECT_FALSE(after(SendResult::kNotSent).maybe_sent);
  EXPECT_EQ(after(SendResult::kMaybeSent).status, SendStatus::kFailed);
  EXPECT_TRUE(after(SendResult::kMaybeSent).maybe_sent);
  EXPECT_EQ(after(SendResult::kNotSent).error, "what the server said");
}

TEST(send_decision, never_refuses_a_transition_of_the_table) {
  for (const auto from : {SendStatus::kPending, SendStatus::kFailed}) {
    for (const auto result : {SendResult::kSent, SendResult::kRefused, SendResult::kUnknownAddress}) {
      EXPECT_TRUE(kSendStatus.allowed(from, after(result).status));
    }
  }
}

TEST(send_decision, gives_up_when_the_next_attempt_would_be_too_late) {
  const auto late = after(SendResult::kNotSent, 20, 24h - 1min);
  EXPECT_EQ(late.status, SendStatus::kDead);
  EXPECT_EQ(late.error, "given up after 1d: what the server said");
  EXPECT_EQ(after(SendResult::kNotSent, 20, 12h).status, SendStatus::kFailed);
}

TEST(retry_delay, doubles_up_to_its_cap) {
  SeededRandom random(2);
  const EmailOptions options;
  auto longest = options.retry_initial;
  for (int failures = 0; failures < 60; ++failures) {
    const auto delay = retry_delay(failures, options, random);
    EXPECT_LE(delay, longest) << failures;
    EXPECT_GE(delay, longest / 2) << failures;
    longest = std::min(2 * longest, options.retry_cap);
  }
}

}  // namespace
}  // namespace fencepost::notify
