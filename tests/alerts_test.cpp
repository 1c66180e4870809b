// deploy/prometheus/alerts.yml asks for metrics by name, and a name that nobody writes never alerts.
#include <filesystem>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "runtime/read_file.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names_in(const std::string& text, const std::regex& pattern) {
  std::set<std::string> names;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

TEST(alerts, ask_for_metrics_that_there_are) {
  const fs::path root = source_dir();
  std::set<std::string> written;
  for (const auto& entry : fs::recursive_directory_iterator(root / "src")) {
    if (entry.path().extension() != ".cpp") continue;
    written.merge(names_in(read_file(entry.path()), std::regex(R"rx((?:counter|gauge|latency)\(\s*"([a-z_]+)")rx")));
  }
  EXPECT_GT(written.size(), 30U);
  std::set<std::string> asked;
  std::istringstream lines(read_file(root / "deploy/prometheus/alerts.yml"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.contains("expr:")) continue;
    // What is followed by a range, by labels, or ends an aggregation.
    asked.merge(names_in(line, std::regex(R"(([a-z]+_[a-z_]+)[\[{)])")));
  }
  EXPECT_GE(asked.size(), 7U);
  for (const auto& name : asked) EXPECT_TRUE(written.contains(name)) << name;
}

}  // namespace
}  // namespace fencepost::test
