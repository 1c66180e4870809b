// The repository's pages: each relative link leads to a file, and each anchor to a heading; the picture of a terminal
// session is drawn from the session's text.
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/read_file.hpp"
#include "tests/support/process.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;

// The page without its blocks of code, in which neither `#` nor brackets mean anything to a reader of Markdown.
std::string prose_of(const std::string& page) {
  std::string prose;
  std::istringstream lines(page);
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find_first_not_of(' ');
    if (begin != std::string::npos && line.compare(begin, 3, "```") == 0) {
      code = !code;
    } else if (!code) {
      prose += line + "\n";
    }
  }
  return prose;
}

// The anchor of a heading as GitHub makes it: lowercase, without punctuation, with a hyphen for each space.
std::string anchor_of(const std::string& heading) {
  const auto text = std::regex_replace(heading, std::regex(R"(\[([^\]]*)\]\([^)]*\))"), "$1");
  std::string anchor;
  for (const unsigned char c : text) {
    if (c == ' ') anchor += '-';
    if (std::isalnum(c) != 0 || c == '-' || c == '_' || c >= 0x80) anchor += static_cast<char>(std::tolower(c));
  }
  return anchor;
}

std::set<std::string> anchors_of(const std::string& page) {
  std::set<std::string> anchors;
  std::map<std::string, int> seen;
  std::istringstream lines(prose_of(page));
  const std::regex heading(R"(#{1,6} +(.*?) *)");
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, match, heading)) continue;
    const auto anchor = anchor_of(match[1]);
    const auto before = seen[anchor]++;
    anchors.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
  }
  return anchors;
}

// The targets of links and pictures that are not addresses.
std::vector<std::string> relative_links_of(const std::string& page) {
  const auto prose = std::regex_replace(prose_of(page), std::regex("`[^`\n]*`"), "");
  const std::regex link(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> links;
  for (auto it = std::sregex_iterator(prose.begin(), prose.end(), link); it != std::sregex_iterator(); ++it) {
    const auto target = (*it)[1].str();
    if (!target.contains("://") && !target.starts_with("mailto:")) links.push_back(target);
  }
  return links;
}

// What a build or a package manager makes is left out.
std::vector<fs::path> pages() {
  const std::set<std::string> not_ours{"build", "node_modules", "var", "dist"};
  std::vector<fs::path> pages;
  for (auto it = fs::recursive_directory_iterator(source_dir()); it != fs::recursive_directory_iterator(); ++it) {
    const auto name = it->path().filename().string();
    if (it->is_directory() && (name.starts_with(".") || not_ours.contains(name))) it.disable_recursion_pending();
    if (it->is_regular_file() && it->path().extension() == ".md") pages.push_back(it->path());
  }
  return pages;
}

// What is wrong with the link; empty if it leads somewhere.
std::string fault_of(const fs::path& page, const std::string& link) {
  const auto hash = link.find('#');
  const auto file = link.substr(0, hash);
  const auto target = file.empty() ? page : page.parent_path() / file;
  if (!fs::exists(target)) return "no such file";
  if (hash == std::string::npos) return "";
  if (target.extension() != ".md") return "an anchor in a file that is no page";
  return anchors_of(read_file(target)).contains(link.substr(hash + 1)) ? "" : "no such heading";
}

TEST(docs, links_lead_to_files_and_headings) {
  std::size_t checked = 0;
  ASSERT_GT(pages().size(), 20U);
  for (const auto& page : pages()) {
    for (const auto& link : relative_links_of(read_file(page))) {
      EXPECT_EQ(fault_of(page, link), "") << page.lexically_relative(source_dir()).string() << " links to " << link;
      ++checked;
    }
  }
  EXPECT_GT(checked, 100U);
}

// On npm there is nothing around the package.
TEST(docs, links_of_the_npm_package_stay_in_the_package) {
  for (const auto& link : relative_links_of(read_file(source_dir() / "clients/typescript/README.md"))) {
    EXPECT_TRUE(link.starts_with("#")) << link;
  }
}

TEST(docs, a_broken_link_would_be_found) {
  const auto page = source_dir() / "README.md";
  EXPECT_EQ(fault_of(page, "docs/tls.md#replacing-a-certificate"), "");
  EXPECT_EQ(fault_of(page, "#try-it"), "");
  EXPECT_EQ(fault_of(page, "docs/tsl.md"), "no such file");
  EXPECT_EQ(fault_of(page, "docs/tls.md#replace-it"), "no such heading");
  EXPECT_EQ(anchors_of("# A `b`, c's [d](e.md)\n## a\n```\n# no\n```\n## a\n"),
            (std::set<std::string>{"a-b-cs-d", "a", "a-1"}));
  EXPECT_EQ(relative_links_of("[a](b.md) `[c](d.md)` ![e](f.svg) [g](https://h)\n```\n[i](j)\n```\n"),
            (std::vector<std::string>{"b.md", "f.svg"}));
}

TEST(docs, the_picture_of_a_terminal_is_drawn_from_its_session) {
  const auto docs = source_dir() / "docs";
  const auto drawn = run_command({"python3", (docs / "terminal.py").string(), (docs / "terminal.txt").string()});
  EXPECT_EQ(drawn.status.code, 0) << drawn.err;
  EXPECT_TRUE(drawn.out == read_file(docs / "terminal.svg")) << "CONTRIBUTING.md says how to draw it again";
}

}  // namespace
}  // namespace fencepost::test
