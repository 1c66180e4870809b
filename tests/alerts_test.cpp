// deploy/prometheus/alerts.yml, checked by Prometheus' own tool with the cases of alerts_test.yml beside it.
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "runtime/read_file.hpp"
#include "tests/support/process.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {
namespace {

const std::filesystem::path kRoot = source_dir();
const std::filesystem::path kRules = kRoot / "deploy/prometheus/alerts.yml";
const std::filesystem::path kCases = kRoot / "deploy/prometheus/alerts_test.yml";

std::set<std::string> names_in(const std::string& text, const std::regex& pattern) {
  std::set<std::string> names;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it) {
    names.insert((*it)[1]);
  }
  return names;
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
  const auto alerts = names_in(read_file(kRules), std::regex(R"(- alert: (\w+))"));
  EXPECT_GE(alerts.size(), 13U);
  const auto cases = read_file(kCases);
  EXPECT_EQ(names_in(cases, std::regex(R"(alertname: (\w+)\s+exp_alerts:\s+- exp_labels)")), alerts);
  EXPECT_EQ(names_in(cases, std::regex(R"(alertname: (\w+)\s+exp_alerts: \[\])")), alerts);
}

// tests/metrics_test.cpp compares docs/metrics.md with a running node.
TEST(alerts, use_only_documented_metrics) {
  const auto documented =
      names_in(read_file(kRoot / "docs/metrics.md"), std::regex(R"(\n\| `([a-z_]+)` \| [a-z]+ \|)"));
  EXPECT_GT(documented.size(), 50U);
  const auto asked = names_in(read_file(kRules), std::regex(R"(\b(fencepost_[a-z_]+))"));
  EXPECT_GE(asked.size(), 12U);
  for (const auto& name : asked) EXPECT_TRUE(documented.contains(name)) << name;
}

}  // namespace
}  // namespace fencepost::test
