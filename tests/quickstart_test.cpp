// docs/quickstart.md, as a newcomer follows it: each command is taken from the page and run, in order.
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runtime/read_file.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/process.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

// A block of commands and the output that the page shows below it, if any.
struct Step {
  std::string commands;
  std::vector<std::string> expected;
  bool has_output = false;
};

struct Page {
  std::vector<Step> steps;
  std::vector<std::string> faults;  // blocks that this test would not run or compare
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Page read_page(const std::string& text) {
  Page page;
  std::optional<std::string> open;  // the language of the block
  for (const auto& line : lines_of(text)) {
    const auto begin = line.find_first_not_of(" \t>");
    const auto mark = begin == std::string::npos ? "" : line.substr(begin, 3);
    if (mark != "```" && mark != "~~~") {
      if (!open || page.steps.empty()) continue;
      if (open == "text") {
        page.steps.back().expected.push_back(line);
      } else {
        page.steps.back().commands += line + "\n";
      }
    } else if (begin != 0 || mark != "```") {
      page.faults.push_back("not a plain fence: " + line);
    } else if (open) {
      open.reset();
    } else {
      open = line.substr(3);
      if (open == "sh" || open == "sh up") {
        page.steps.emplace_back();
      } else if (open != "text") {
        page.faults.push_back("neither commands nor their output: " + line);
      } else if (page.steps.empty() || std::exchange(page.steps.back().has_output, true)) {
        page.faults.push_back("output without commands");
      }
    }
  }
  if (open) page.faults.push_back("a block without an end");
  return page;
}

// Each run of spaces as one, none at the ends.
std::string spaced(const std::string& text) {
  return std::regex_replace(std::regex_replace(text, std::regex(R"(\s+)"), " "), std::regex("^ | $"), "");
}

// Whether a line of the page, in which … stands for anything, is the whole line of the output.
bool shows(const std::string& line, const std::string& expected) {
  auto pattern = std::regex_replace(spaced(expected), std::regex(R"([^\w\s…])"), R"(\$&)");
  pattern = std::regex_replace(pattern, std::regex(" ?… ?"), ".*");
  return std::regex_match(spaced(line), std::regex(pattern));
}

// The first line that is missing in the output, in order; empty if all are there.
std::string missing(const std::vector<std::string>& expected, const std::vector<std::string>& output) {
  auto at = output.begin();
  for (const auto& each : expected) {
    at = std::find_if(at, output.end(), [&](const auto& line) { return shows(line, each); });
    if (at == output.end()) return each;
    ++at;
  }
  return "";
}

// What a step has printed, and the commands that failed, which a trap of the shell reports among it.
struct Outcome {
  std::vector<std::string> output;
  std::vector<std::string> failures;  // "exit code 3 of ./fp …"
};

constexpr std::string_view kTrap = R"(trap 'echo "=== exit code $? of $BASH_COMMAND"' ERR)";

Outcome outcome_of(const std::string& text) {
  Outcome outcome;
  for (const auto& line : lines_of(text)) {
    if (line.starts_with("=== ")) {
      outcome.failures.push_back(line.substr(4));
    } else {
      outcome.output.push_back(line);
    }
  }
  return outcome;
}

// What differs between the page and what happened. The page names the exit code of each command that fails.
std::string fault_of(const Step& step, const Outcome& outcome) {
  const std::regex code("exit code [0-9]+");
  std::vector<std::string> named;
  for (const auto& line : step.expected) {
    if (std::regex_match(line, code)) named.push_back(line);
  }
  for (std::size_t i = 0; i < std::max(named.size(), outcome.failures.size()); ++i) {
    if (i >= outcome.failures.size()) return "the page names one more " + named[i];
    if (i >= named.size() || !outcome.failures[i].starts_with(named[i] + " ")) {
      return "the page does not name " + outcome.failures[i];
    }
  }
  const auto line = missing(step.expected, outcome.output);
  return line.empty() ? "" : "missing: " + line;
}

TEST(quickstart, every_command_of_the_page_does_what_the_page_says) {
  const auto page = read_page(read_file(source_dir() / "docs/quickstart.md"));
  EXPECT_THAT(page.faults, testing::IsEmpty());
  const auto& steps = page.steps;
  ASSERT_GT(steps.size(), 10U);
  ASSERT_EQ(steps[0].commands, "./fp up\n");

  // ./fp runs the built program in the folder of the clone. Here it runs in a folder of the test, on a free port.
  const TempDir dir("quickstart");
  std::ofstream(dir / "fp") << "#!/bin/sh\ncase $1 in up) shift; set -- up --port 0 \"$@\" ;; esac\n"
                            << "FENCEPOST_PROGRAM_NAME=./fp exec " << fencepost_program() << " \"$@\"\n";
  ASSERT_EQ(::chmod((dir / "fp").c_str(), 0755), 0);
  const RunningFencepost up({"up", "--port", "0", "--data-dir", (dir / "var").string()}, dir / "up.out");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(dir / "var/up.json"); }, 90s)) << up.output();

  // One shell for all, so that variables stay. A mark divides the outputs.
  const std::string end_of_step = "<<< end of step";
  std::string script = "cd " + dir.path().string() + "\nexec 2>&1\nset -o pipefail\n" + std::string(kTrap) + "\n";
  for (std::size_t i = 1; i < steps.size(); ++i) script += steps[i].commands + "echo '" + end_of_step + "'\n";
  const auto begun = std::chrono::steady_clock::now();
  const auto done = run_command({"bash", "-c", script}, {}, 300s);
  EXPECT_TRUE(done.status.success()) << done.status.to_string();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5min) << "a person needs the other half of the ten minutes";

  std::string rest = done.out;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const auto end = rest.find(end_of_step + "\n");
    ASSERT_NE(end, std::string::npos) << "the shell ended in:\n" << steps[i].commands << rest;
    const auto output = rest.substr(0, end);
    EXPECT_EQ(fault_of(steps[i], outcome_of(output)), "") << "after\n" << steps[i].commands << "came\n" << output;
    rest = rest.substr(end + end_of_step.size() + 1);
  }
}

TEST(quickstart, a_missing_line_would_be_found) {
  EXPECT_EQ(missing({"… CONFIRMED block … is final …"}, {"02:38:53.222  CONFIRMED     block 16 is final  vm #1"}), "");
  EXPECT_EQ(missing({"state … STUCK"}, {"state        TRACKING"}), "state … STUCK");
  EXPECT_EQ(missing({"state STUCK"}, {"state        STUCK (gap)"}), "state STUCK") << "the whole line";
  EXPECT_EQ(missing({"balance 200"}, {"daily limit  2000"}), "balance 200");
  EXPECT_EQ(missing({"0x…"}, {"null"}), "0x…");
  EXPECT_EQ(missing({"b", "a"}, {"a", "b"}), "a") << "in order";
}

TEST(quickstart, an_exit_code_that_the_page_does_not_name_would_be_found) {
  const auto run = [](const std::string& commands) {
    const auto done = run_command({"bash", "-c", "set -o pipefail\n" + std::string(kTrap) + "\n" + commands});
    return outcome_of(done.out);
  };
  EXPECT_EQ(fault_of({"", {}}, run("true | cat\nA=$(true)")), "");
  EXPECT_EQ(fault_of({"", {}}, run("(exit 3) | cat")), "the page does not name exit code 3 of cat");
  EXPECT_EQ(fault_of({"", {}}, run("A=$(false)")), "the page does not name exit code 1 of A=$(false)");
  EXPECT_EQ(fault_of({"", {"exit code 3"}}, run("(exit 3)\necho \"exit code $?\"")), "");
  EXPECT_EQ(fault_of({"", {"exit code 3"}}, run("(exit 4)\necho \"exit code $?\"")),
            "the page does not name exit code 4 of ( exit 4 )");
  EXPECT_EQ(fault_of({"", {"exit code 3"}}, run("echo 'exit code 3'")), "the page names one more exit code 3");
}

TEST(quickstart, a_block_that_would_not_be_run_is_a_fault) {
  using testing::ElementsAre;
  EXPECT_THAT(read_page("```sh\na\n```\n\n```text\nb\n```\n").faults, ElementsAre());
  EXPECT_THAT(read_page("```bash\na\n```\n").faults, ElementsAre("neither commands nor their output: ```bash"));
  EXPECT_THAT(read_page("```\na\n```\n").faults, ElementsAre("neither commands nor their output: ```"));
  EXPECT_THAT(read_page("- x\n\n  ```sh\n  a\n  ```\n").faults,
              ElementsAre("not a plain fence:   ```sh", "not a plain fence:   ```"));
  EXPECT_THAT(read_page("~~~sh\n").faults, ElementsAre("not a plain fence: ~~~sh"));
  EXPECT_THAT(read_page("```text\nb\n```\n").faults, ElementsAre("output without commands"));
  EXPECT_THAT(read_page("```sh\na\n```\n```text\nb\n```\n```text\nc\n```\n").faults,
              ElementsAre("output without commands"));
  EXPECT_THAT(read_page("```sh\na\n").faults, ElementsAre("a block without an end"));
}

}  // namespace
}  // namespace fencepost::test
