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
                         clock_,
                         random_};
};

TEST_F(EndpointHealthTest, the_configured_order_is_the_order_of_preference) {
  EXPECT_EQ(health_.candidates(), (Order{0, 1, 2}));
  health_.succeeded(2, 1us);
  EXPECT_EQ(health_.candidates(), (Order{0, 1, 2}));
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
  const EndpointHealth twins({"https://x/key1", "https://x/key2", "https://x/key3"}, {}, clock_, random_);
  EXPECT_EQ(twins.label(0), "x");
  EXPECT_EQ(twins.label(1), "x#2");
  EXPECT_EQ(twins.label(2), "x#3");
}

TEST_F(EndpointHealthTest, bad_lists_are_refused) {
  EXPECT_THROW(EndpointHealth({}, {}, clock_, random_), Exception);
  EXPECT_THROW(EndpointHealth({"not a url"}, {}, clock_, random_), Exception);
}

}  // namespace
}  // namespace fencepost::evm
