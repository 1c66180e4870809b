#include "evm/endpoint_health.hpp"

#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

using namespace std::chrono_literals;
using Order = std::vector<std::size_t>;

class EndpointHealthTest : public ::testing::Test {
 protected:
  ManualClock clock_{TimePoint{1h}};
  SeededRandom random_{1};
  EndpointHealth health_{{"http://a", "http://b:8545/key", "https://u:p@c/?k=1"},
                         {.initial = 1s, .cap = 8s, .factor = 2.0},
                         100,
                         clock_,
                         random_};
};

TEST_F(EndpointHealthTest, the_configured_order_is_the_order_of_preference) {
  EXPECT_EQ(health_.candidates(), (Order{0, 1, 2}));
  health_.succeeded(2, 1us);
  EXPECT_EQ(health_.candidates(), (Order{0, 1, 2}));
}

TEST_F(EndpointHealthTest, knows_when_each_endpoint_answered_last) {
  EXPECT_EQ(health_.status(0).answered_at, std::nullopt);
  health_.succeeded(0, 1us);
  const auto answered = clock_.now();
  clock_.advance(1min);
  health_.failed(0);
  EXPECT_EQ(health_.status(0).answered_at, answered);
  EXPECT_EQ(health_.status(1).answered_at, std::nullopt);
}

TEST_F(EndpointHealthTest, an_endpoint_that_fails_is_tried_last_until_its_cooldown_ends) {
  health_.failed(0);
  EXPECT_EQ(health_.candidates(), (Order{1, 2, 0}));
  EXPECT_TRUE(health_.status(0).cooling_until);
  clock_.advance(1s);
  EXPECT_EQ(health_.candidates(), (Order{0, 1, 2}));
  EXPECT_FALSE(health_.status(0).cooling_until);
}

TEST_F(EndpointHealthTest, the_cooldown_grows_with_each_failure_in_a_row_up_to_the_cap) {
  std::chrono::microseconds least{0};
  for (const auto ceiling : {1s, 2s, 4s, 8s, 8s}) {
    health_.failed(0);
    const auto pause = *health_.status(0).cooling_until - clock_.now();
    EXPECT_GE(pause, ceiling / 2);
    EXPECT_LE(pause, ceiling);
    least = std::max<std::chrono::microseconds>(least, pause);
  }
  EXPECT_EQ(health_.status(0).consecutive_failures, 5U);
  health_.succeeded(0, 10ms);
  EXPECT_EQ(health_.status(0).consecutive_failures, 0U);
  health_.failed(0);
  EXPECT_LE(*health_.status(0).cooling_until - clock_.now(), 1s);
}

TEST_F(EndpointHealthTest, a_cheap_answer_ends_the_failure_and_does_not_shorten_the_next_cooldown) {
  for (int i = 0; i < 4; ++i) health_.failed(0);
  EXPECT_FALSE(health_.succeeded(0, 10ms, Proof::kNothing));
  EXPECT_EQ(health_.status(0).consecutive_failures, 4U);
  EXPECT_TRUE(health_.status(0).cooling_until);
  EXPECT_TRUE(health_.succeeded(0, 10ms, Proof::kAnswers));
  EXPECT_EQ(health_.status(0).consecutive_failures, 0U);
  health_.failed(0);
  EXPECT_GE(*health_.status(0).cooling_until - clock_.now(), 4s);
}

TEST_F(EndpointHealthTest, retry_after_sets_the_cooldown_within_bounds) {
  health_.failed(0, 30s);
  EXPECT_EQ(*health_.status(0).cooling_until, clock_.now() + 30s);
  health_.failed(1, std::chrono::hours(1000));
  EXPECT_EQ(*health_.status(1).cooling_until, clock_.now() + 1h);
}

TEST_F(EndpointHealthTest, when_all_cool_down_the_soonest_comes_first) {
  health_.failed(0, 30s);
  health_.failed(1, 10s);
  health_.failed(2, 20s);
  EXPECT_EQ(health_.candidates(), (Order{1, 2, 0}));
}

TEST_F(EndpointHealthTest, the_wrong_chain_is_never_a_candidate) {
  health_.set_wrong_chain(1, true);
  EXPECT_EQ(health_.candidates(), (Order{0, 2}));
  health_.set_wrong_chain(1, false);
  EXPECT_EQ(health_.candidates(), (Order{0, 1, 2}));
}

TEST_F(EndpointHealthTest, latency_is_a_moving_average) {
  health_.succeeded(0, 100ms);
  EXPECT_EQ(health_.status(0).latency, 100ms);
  health_.succeeded(0, 200ms);
  EXPECT_EQ(health_.status(0).latency, 120ms);
}

TEST_F(EndpointHealthTest, labels_show_no_credentials) {
  EXPECT_EQ(health_.label(0), "a");
  EXPECT_EQ(health_.label(1), "b:8545");
  EXPECT_EQ(health_.label(2), "c");
  const EndpointHealth twins({"https://x/key1", "https://x/key2", "https://x/key3"}, {}, 1, clock_, random_);
  EXPECT_EQ(twins.label(0), "x");
  EXPECT_EQ(twins.label(1), "x#2");
  EXPECT_EQ(twins.label(2), "x#3");
}

TEST_F(EndpointHealthTest, bad_lists_are_refused) {
  EXPECT_THROW(EndpointHealth({}, {}, 1, clock_, random_), Exception);
  EXPECT_THROW(EndpointHealth({"not a url"}, {}, 1, clock_, random_), Exception);
}

TEST_F(EndpointHealthTest, an_endpoint_that_stands_still_is_used_after_the_others_until_it_is_level_for_two_checks) {
  EXPECT_TRUE(health_.compare_heads({100, 100, 100}).empty());
  EXPECT_TRUE(health_.compare_heads({100, 101, 100}).empty()) << "a block takes its time to spread";
  EXPECT_EQ(health_.compare_heads({100, 101, 101}), (Order{0}));
  EXPECT_EQ(health_.candidates(), (Order{1, 2, 0}));
  EXPECT_EQ(health_.healthy(), (Order{1, 2}));
  EXPECT_TRUE(health_.status(0).behind);
  EXPECT_TRUE(health_.compare_heads({103, 103, 103}).empty()) << "level once";
  EXPECT_EQ(health_.compare_heads({104, 104, std::nullopt}), (Order{0}));
  EXPECT_EQ(health_.healthy(), (Order{0, 1, 2}));
}

TEST_F(EndpointHealthTest, a_chain_that_is_rolled_back_leaves_no_endpoint_behind_for_long) {
  health_.compare_heads({100, 100, 100});
  health_.compare_heads({50, 50, 50});
  EXPECT_EQ(health_.candidates(), (Order{0, 1, 2}));
  health_.compare_heads({51, 51, 51});
  health_.compare_heads({52, 52, 52});
  EXPECT_EQ(health_.healthy(), (Order{0, 1, 2}));
}

TEST_F(EndpointHealthTest, the_highest_head_forgets_old_reports_and_other_chains) {
  EXPECT_FALSE(health_.highest_head());
  health_.note_head(0, 10);
  health_.note_head(1, 900);
  EXPECT_EQ(health_.highest_head(), 900);
  health_.set_wrong_chain(1, true);
  EXPECT_EQ(health_.highest_head(), 10);
  clock_.advance(30s);
  health_.note_head(2, 9);
  clock_.advance(31s);
  EXPECT_EQ(health_.highest_head(), 9);
}

TEST_F(EndpointHealthTest, the_chain_is_checked_again_after_a_failure) {
  EXPECT_TRUE(health_.chain_unchecked(0));
  health_.set_wrong_chain(0, false);
  EXPECT_FALSE(health_.chain_unchecked(0));
  health_.failed(0);
  EXPECT_TRUE(health_.chain_unchecked(0));
  health_.succeeded(0, 1us);
  EXPECT_TRUE(health_.chain_unchecked(0));
}

TEST_F(EndpointHealthTest, the_limit_of_a_batch_halves_and_grows_again) {
  EXPECT_EQ(health_.batch_limit(0), 100U);
  health_.batch_refused(0, 40);
  EXPECT_EQ(health_.batch_limit(0), 20U);
  EXPECT_EQ(health_.batch_limit(1), 100U) << "each endpoint has its own";
  health_.batch_refused(0, 100);
  EXPECT_EQ(health_.batch_limit(0), 20U) << "a larger one says nothing new";
  for (int i = 0; i < 10; ++i) health_.batch_refused(0, health_.batch_limit(0));
  EXPECT_EQ(health_.batch_limit(0), 1U);
  clock_.advance(61min);
  EXPECT_EQ(health_.batch_limit(0), 2U);
  EXPECT_EQ(health_.batch_limit(0), 2U);
}

TEST_F(EndpointHealthTest, a_chain_is_usable_while_one_endpoint_answers) {
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(health_.any_usable());
    health_.failed(i);
  }
  EXPECT_FALSE(health_.any_usable());
  health_.succeeded(1, 1us);
  EXPECT_TRUE(health_.any_usable());
  health_.set_wrong_chain(1, true);
  EXPECT_FALSE(health_.any_usable());
}

}  // namespace
}  // namespace fencepost::evm
