// The metrics that docs/metrics.md lists, which tests/metrics_test.cpp compares with a running node, and those that
// the alerts ask for.
#pragma once

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "runtime/read_file.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {

struct Metric {
  std::string type;
  std::set<std::string> labels;
  bool operator==(const Metric&) const = default;
};
using MetricsByName = std::map<std::string, Metric>;

// The first group of each match.
inline std::set<std::string> all_matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

// Rows like: | `name` | type | `label`, `label` | meaning | advice |
inline MetricsByName documented_metrics() {
  const std::regex row(R"(^\| `([a-z_]+)` \| ([a-z]+) \| ([^|]*)\|.*)");
  const std::regex label("`([a-z_]+)`");
  MetricsByName metrics;
  std::istringstream lines(read_file(source_dir() / "docs/metrics.md"));
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    EXPECT_FALSE(metrics.contains(match[1])) << match[1] << " has two rows";
    metrics[match[1]] = {match[2], all_matches(match[3], label)};
  }
  return metrics;
}

inline std::set<std::string> metrics_of_alerts() {
  std::set<std::string> names;
  const auto rules = read_file(source_dir() / "deploy/prometheus/alerts.yml");
  for (const auto& expr : all_matches(rules, std::regex(R"(\n        expr:([\s\S]*?)\n        (?:for|labels):)"))) {
    names.merge(all_matches(expr, std::regex(R"(\b(fencepost_[a-z_]+))")));
  }
  return names;
}

}  // namespace fencepost::test
