// deploy/prometheus/alerts.yml, checked by Prometheus' own tool with the cases of alerts_test.yml beside it.
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "runtime/read_file.hpp"
#include "tests/support/metric_docs.hpp"
#include "tests/support/process.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {
namespace {

const std::filesystem::path kRoot = source_dir();
const std::filesystem::path kRules = kRoot / "deploy/prometheus/alerts.yml";
const std::filesystem::path kCases = kRoot / "deploy/prometheus/alerts_test.yml";
const std::filesystem::path kHealthy = kRoot / "deploy/prometheus/healthy_test.yml";

std::set<std::string> alert_names() {
  return all_matches(read_file(kRules), std::regex(R"(- alert: (\w+))"));
}

TEST(alerts, are_rules_that_prometheus_accepts) {
  const auto checked = run_command({"promtool", "check", "rules", kRules.string()});
  EXPECT_EQ(checked.status.code, 0) << checked.out << checked.err;
}

TEST(alerts, fire_in_the_cases_of_alerts_test_yml_and_only_there) {
  const auto tested = run_command({"promtool", "test", "rules", kCases.string()});
  EXPECT_EQ(tested.status.code, 0) << tested.out << tested.err;
}

TEST(alerts, have_a_case_that_fires_and_one_that_does_not) {
  const auto alerts = alert_names();
  EXPECT_GE(alerts.size(), 36U);
  const auto cases = read_file(kCases);
  EXPECT_EQ(all_matches(cases, std::regex(R"(alertname: (\w+)\s+exp_alerts:\s+- exp_labels)")), alerts);
  EXPECT_EQ(all_matches(cases, std::regex(R"(alertname: (\w+)\s+exp_alerts: \[\])")), alerts);
}

TEST(alerts, do_not_fire_in_a_healthy_cluster) {
  const auto tested = run_command({"promtool", "test", "rules", kHealthy.string()});
  EXPECT_EQ(tested.status.code, 0) << tested.out << tested.err;
  const auto cases = read_file(kHealthy);
  EXPECT_EQ(all_matches(cases, std::regex(R"(alertname: (\w+), exp_alerts: \[\])")), alert_names());
  // An alert whose metrics are missing cannot fire.
  const auto healthy = all_matches(cases, std::regex(R"(series: '(fencepost_[a-z_]+))"));
  const auto asked = metrics_of_alerts();
  EXPECT_GE(asked.size(), 30U);
  for (const auto& name : asked) EXPECT_TRUE(healthy.contains(name)) << name;
}

TEST(alerts, cover_what_an_operator_must_hear_of) {
  const auto alerts = alert_names();
  for (const auto* name : {"FencepostNodeDown", "FencepostNoNode", "FencepostEndpointDead", "FencepostHeadNotMoving",
                           "FencepostServerErrors", "FencepostTransactionsUnled", "FencepostCertificateExpires"}) {
    EXPECT_TRUE(alerts.contains(name)) << name;
  }
}

// tests/metrics_test.cpp compares docs/metrics.md with a running node.
TEST(alerts, use_only_documented_metrics) {
  const auto documented =
      all_matches(read_file(kRoot / "docs/metrics.md"), std::regex(R"(\n\| `([a-z_]+)` \| [a-z]+ \|)"));
  EXPECT_GT(documented.size(), 50U);
  const auto asked = all_matches(read_file(kRules), std::regex(R"(\b(fencepost_[a-z_]+))"));
  EXPECT_GE(asked.size(), 12U);
  for (const auto& name : asked) EXPECT_TRUE(documented.contains(name)) << name;
}

}  // namespace
}  // namespace fencepost::test
