#include "runtime/metrics.hpp"

#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(metrics, the_same_name_and_labels_are_the_same_metric) {
  Metrics metrics;
  auto& a = metrics.counter("tx_submitted_total", "Submitted.", {{"chain", "1"}});
  auto& b = metrics.counter("tx_submitted_total", "Submitted.", {{"chain", "1"}});
  auto& c = metrics.counter("tx_submitted_total", "Submitted.", {{"chain", "2"}});
  EXPECT_EQ(&a, &b);
  EXPECT_NE(&a, &c);
  EXPECT_EQ(&metrics.gauge("depth", "Depth."), &metrics.gauge("depth", "Depth."));
  EXPECT_EQ(&metrics.latency("wait_seconds", "Wait."), &metrics.latency("wait_seconds", "Wait."));
}

TEST(metrics, the_first_help_counts) {
  Metrics metrics;
  auto& a = metrics.counter("x_total", "First.");
  auto& b = metrics.counter("x_total", "Second.");
  EXPECT_EQ(&a, &b);
  EXPECT_THAT(metrics.scrape(), HasSubstr("# HELP fencepost_x_total First.\n"));
  EXPECT_THAT(metrics.scrape(), Not(HasSubstr("Second.")));
}

TEST(metrics, scrapes_as_text) {
  Metrics metrics;
  metrics.counter("tx_submitted_total", "Submitted.", {{"chain", "1"}}).Increment(3);
  metrics.gauge("queue_depth", "Depth.").Set(-2);
  auto& wait = metrics.latency("wait_seconds", "Wait.", {{"pool", "a"}});
  wait.Observe(0.0002);
  wait.Observe(100);
  const auto text = metrics.scrape();
  EXPECT_THAT(text,
              HasSubstr("# TYPE fencepost_tx_submitted_total counter\nfencepost_tx_submitted_total{chain=\"1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE fencepost_queue_depth gauge\nfencepost_queue_depth -2\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE fencepost_wait_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("wait_seconds_count{pool=\"a\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("wait_seconds_bucket{pool=\"a\",le=\"0.00025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("wait_seconds_bucket{pool=\"a\",le=\"30\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("wait_seconds_bucket{pool=\"a\",le=\"+Inf\"} 2\n"));
}

TEST(metrics, time_spent_takes_two_lines_and_a_lifetime_may_be_hours) {
  Metrics metrics;
  metrics.time_spent("run_seconds", "Runs.", {{"worker", "a"}}).Observe(0.5);
  metrics.lifetime("life_seconds", "Lives.").Observe(2000);
  const auto text = metrics.scrape();
  EXPECT_THAT(text, HasSubstr("# TYPE fencepost_run_seconds summary\n"
                              "fencepost_run_seconds_count{worker=\"a\"} 1\n"
                              "fencepost_run_seconds_sum{worker=\"a\"} 0.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("fencepost_run_seconds{")));
  EXPECT_THAT(text, Not(HasSubstr("fencepost_run_seconds_bucket")));
  EXPECT_THAT(text, HasSubstr("fencepost_life_seconds_bucket{le=\"1200\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("fencepost_life_seconds_bucket{le=\"3600\"} 1\n"));
}

TEST(metrics, a_label_cannot_forge_a_line) {
  Metrics metrics;
  metrics.counter("x_total", "X.", {{"l", "a\"} 1\nforged 1\n\\"}}).Increment();
  const auto text = metrics.scrape();
  EXPECT_THAT(text, HasSubstr("x_total{l=\"a\\\"} 1\\nforged 1\\n\\\\\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("\nforged")));
}

TEST(metrics, every_name_but_process_metrics_has_the_prefix) {
  Metrics metrics;
  metrics.gauge("depth", "Depth.");
  std::istringstream lines(metrics.scrape());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    EXPECT_TRUE(line.starts_with("fencepost_") || line.starts_with("process_")) << line;
  }
  EXPECT_THAT(metrics.scrape(), HasSubstr("\nfencepost_depth 0\n"));
  EXPECT_THAT(metrics.scrape(), HasSubstr("\nprocess_open_fds "));
}

TEST(metrics, refuses_names_that_break_the_rules) {
  Metrics metrics;
  EXPECT_THROW(metrics.counter("confirmations_newFork_total", "Camel case."), std::invalid_argument);
  EXPECT_THROW(metrics.counter("tx_submitted", "A counter without _total."), std::invalid_argument);
  EXPECT_THROW(metrics.gauge("depth_total", "A gauge with it."), std::invalid_argument);
  EXPECT_THROW(metrics.latency("wait", "Time without a unit."), std::invalid_argument);
  EXPECT_THROW(metrics.gauge("fencepost_depth", "The prefix twice."), std::invalid_argument);
}

TEST(metrics, refuses_names_prometheus_would_refuse) {
  Metrics metrics;
  EXPECT_ANY_THROW(metrics.counter("tx.submitted_total", "Dots are not allowed."));
  EXPECT_ANY_THROW(metrics.counter("fine_total", "Label.", {{"bad-label", "x"}}));
  metrics.latency("taken_seconds", "A histogram.");
  EXPECT_ANY_THROW(metrics.gauge("taken_seconds", "Not a gauge too."));
}

TEST(metrics, refreshes_before_each_scrape) {
  Metrics metrics;
  auto& gauge = metrics.gauge("connections", "Open.");
  int asked = 0;
  metrics.before_scrape([&] { gauge.Set(++asked); });
  EXPECT_THAT(metrics.scrape(), HasSubstr("connections 1\n"));
  EXPECT_THAT(metrics.scrape(), HasSubstr("connections 2\n"));
}

TEST(metrics, a_refresher_may_add_metrics_and_refreshers) {
  Metrics metrics;
  metrics.before_scrape([&] {
    metrics.gauge("late", "Found while scraping.").Set(1);
    metrics.before_scrape([&] { metrics.gauge("later", "Found by the one found.").Set(1); });
  });
  EXPECT_THAT(metrics.scrape(), HasSubstr("late 1\n"));
  EXPECT_THAT(metrics.scrape(), HasSubstr("later 1\n"));
}

TEST(metrics, threads_count_and_scrape_at_once) {
  Metrics metrics;
  metrics.counter("n_total", "N.");
  constexpr int kEach = 2000;
  {
    std::vector<std::jthread> threads;
    threads.reserve(3);
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) metrics.counter("n_total", "N.").Increment();
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_THAT(metrics.scrape(), HasSubstr("n_total"));
    });
  }
  EXPECT_EQ(metrics.counter("n_total", "N.").Value(), 3.0 * kEach);
}

}  // namespace
}  // namespace fencepost
