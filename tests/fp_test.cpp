// ./fp, the script that builds, tests and starts Fencepost.
#include <algorithm>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fencepost.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSubsetOf;
using testing::Not;

const std::string kFp = (source_dir() / "fp").string();

// The first word of each line that is indented by two spaces, after the line `heading`.
std::vector<std::string> listed_after(const std::string& text, const std::string& heading) {
  std::vector<std::string> out;
  std::istringstream lines(text.substr(std::min(text.size(), text.find(heading))));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line.starts_with("  ")) out.push_back(line.substr(2, line.find(' ', 2) - 2));
  return out;
}

TEST(fp, help_lists_every_command_of_the_program) {
  auto nouns = listed_after(fencepost({"--help"}).out, "Subcommands:");
  ASSERT_THAT(nouns, Contains("tx"));
  std::erase_if(nouns, [](const auto& noun) { return noun == "up" || noun == "version" || noun == "help"; });
  const auto help = run_command({kFp, "help"});
  ASSERT_EQ(help.status.code, 0) << help.err;
  std::istringstream line(help.out.substr(help.out.find("Commands of the program itself")));
  std::string words;
  std::getline(line, words);
  std::getline(line, words);
  std::istringstream split(words);
  const std::vector<std::string> known{std::istream_iterator<std::string>(split), {}};
  EXPECT_THAT(nouns, IsSubsetOf(known));
}

TEST(fp, an_unknown_command_is_refused_without_building) {
  const auto refused = run_command({kFp, "bogus"});
  EXPECT_EQ(refused.status.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("unknown command 'bogus'"));
  EXPECT_THAT(refused.err, Not(HasSubstr("building")));
}

}  // namespace
}  // namespace fencepost::test
