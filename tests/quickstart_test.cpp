// docs/quickstart.md, as a newcomer follows it: each command is taken from the page and run, in order.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <vector>

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
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<Step> steps_of(const std::string& page) {
  std::vector<Step> steps;
  std::string kind;
  for (const auto& line : lines_of(page)) {
    if (line.starts_with("```")) {
      kind = kind.empty() ? line.substr(3) : "";
      if (kind.starts_with("sh")) steps.emplace_back();
    } else if (kind == "sh up" || kind == "sh") {
      steps.back().commands += line + "\n";
    } else if (kind == "text") {
      steps.back().expected.push_back(line);
    }
  }
  return steps;
}

// Whether a line of the page, in which … stands for anything, is part of a line of the output.
bool shows(const std::string& line, const std::string& expected) {
  std::string pattern;
  for (std::size_t at = 0; at < expected.size();) {
    if (expected.compare(at, 3, "…") == 0) {
      pattern += ".*";
      at += 3;
    } else {
      if (!std::isalnum(static_cast<unsigned char>(expected[at])) && expected[at] != ' ') pattern += '\\';
      pattern += expected[at] == ' ' ? "\\s+" : std::string(1, expected[at]);
      ++at;
    }
  }
  // Spaces around … belong to it.
  pattern = std::regex_replace(pattern, std::regex(R"(\\s\+\.\*\\s\+|^\.\*\\s\+|\\s\+\.\*)"), ".*");
  return std::regex_search(line, std::regex(pattern));
}

// The first line that is missing in the output, in order; empty if all are there.
std::string missing(const std::vector<std::string>& expected, const std::string& output) {
  const auto lines = lines_of(output);
  auto at = lines.begin();
  for (const auto& each : expected) {
    at = std::find_if(at, lines.end(), [&](const auto& line) { return shows(line, each); });
    if (at == lines.end()) return each;
    ++at;
  }
  return "";
}

TEST(quickstart, every_command_of_the_page_does_what_the_page_says) {
  const auto steps = steps_of(read_file(source_dir() / "docs/quickstart.md"));
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
  std::string script = "cd " + dir.path().string() + "\nexec 2>&1\n";
  for (std::size_t i = 1; i < steps.size(); ++i) script += steps[i].commands + "echo '=== end of step'\n";
  const auto begun = std::chrono::steady_clock::now();
  const auto done = run_command({"bash", "-c", script}, {}, 300s);
  EXPECT_TRUE(done.status.success()) << done.status.to_string();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5min) << "a person needs the other half of the ten minutes";

  std::string rest = done.out;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const auto end = rest.find("=== end of step\n");
    ASSERT_NE(end, std::string::npos) << "the shell ended in:\n" << steps[i].commands << rest;
    const auto output = rest.substr(0, end);
    EXPECT_EQ(missing(steps[i].expected, output), "") << "after\n" << steps[i].commands << "came\n" << output;
    rest = rest.substr(end + 16);
  }
}

TEST(quickstart, a_missing_line_would_be_found) {
  EXPECT_EQ(missing({"… CONFIRMED … is final"}, "02:38:53.222  CONFIRMED       block 16 is final  vm #1\n"), "");
  EXPECT_EQ(missing({"state … STUCK"}, "state        STUCK (gap)\n"), "");
  EXPECT_EQ(missing({"state … STUCK"}, "state        TRACKING\n"), "state … STUCK");
  EXPECT_EQ(missing({"b", "a"}, "a\nb\n"), "a") << "in order";
}

}  // namespace
}  // namespace fencepost::test
