// Compares the lists of event types with the events that the sources append and with docs/events.md.
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "outbox/feed/log_event.hpp"
#include "runtime/read_file.hpp"
#include "tests/support/event_schema.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/source_dir.hpp"
#include "timelock/model/event_type.hpp"
#include "transfer/event_type.hpp"
#include "tx/model/event_type.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;

struct Listed {
  std::string name;
  std::string meaning;

  friend bool operator==(const Listed&, const Listed&) = default;
  friend void PrintTo(const Listed& one, std::ostream* out) { *out << one.name << ": " << one.meaning; }
};

std::vector<Listed> all_listed() {
  std::vector<Listed> out;
  for (const auto& row : tx::kTxEvents) out.push_back({std::string(row.name), std::string(row.meaning)});
  for (const auto& row : timelock::kTimelockEvents) out.push_back({std::string(row.name), std::string(row.meaning)});
  for (const auto& row : transfer::kTransferEvents) out.push_back({std::string(row.name), std::string(row.meaning)});
  return out;
}

// Returns what `pattern` captures in the files below `folder`, without tests.
std::set<std::string> captured(const fs::path& folder, const std::set<std::string>& extensions,
                               const std::regex& pattern) {
  static const std::regex kOfTests("_(pg)?test\\.cpp$|_test_support\\.hpp$");
  std::set<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!extensions.contains(entry.path().extension()) || std::regex_search(entry.path().string(), kOfTests)) continue;
    const auto text = read_file(entry.path());
    for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it) {
      out.insert((*it)[1]);
    }
  }
  return out;
}

// Events are appended by SQL, which names them, and by steps, which use the enum.
TEST(event_types, are_those_that_the_sources_append) {
  const fs::path root = source_dir();
  const std::regex in_sql("'((?:Tx|Transfer|Flow|Timelock)[A-Z][A-Za-z]*)'");
  auto appended = captured(root / "src", {".cpp", ".hpp"}, in_sql);
  appended.merge(captured(root / "db/migrations", {".sql"}, in_sql));
  for (const auto& name : captured(root / "src/tx", {".cpp"}, std::regex("TxEvent::k([A-Za-z]+)"))) {
    appended.insert("Tx" + name);
  }
  std::set<std::string> listed;
  for (const auto& one : all_listed()) listed.insert(one.name);
  EXPECT_EQ(appended, listed);
}

TEST(event_types, have_a_row_each_in_the_docs) {
  std::vector<Listed> documented;
  std::istringstream lines(read_file(source_dir() / "docs/events.md"));
  const std::regex row(R"(^\| `((?:Tx|Transfer|Flow|Timelock)[A-Z][A-Za-z]*)` \| ([^|]*) \| [^|]+ \|$)");
  for (std::string line; std::getline(lines, line);) {
    if (std::smatch found; std::regex_match(line, found, row)) documented.push_back({found[1], found[2]});
  }
  EXPECT_EQ(documented, all_listed());
}

// The examples in the docs, each on a line of its own.
std::vector<boost::json::value> documented_examples() {
  std::vector<boost::json::value> out;
  std::istringstream lines(read_file(source_dir() / "docs/events.md"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(R"({"specversion")")) out.push_back(boost::json::parse(line));
  }
  return out;
}

TEST(event_types, have_an_example_each_in_the_docs_that_matches_its_schema) {
  std::vector<std::string> types, expected;
  for (const auto& example : documented_examples()) {
    types.emplace_back(example.at("type").as_string());
    EXPECT_EQ(problems_of_event(example), std::vector<std::string>{});
  }
  for (const auto& one : all_listed()) expected.push_back(one.name);
  expected.emplace_back(outbox::kGapType);
  EXPECT_EQ(types, expected);
}

TEST(event_types, have_a_schema_each_in_the_openapi_document) {
  const auto document = boost::json::parse(read_file(source_dir() / "api/openapi.json"));
  std::set<std::string> described, expected;
  for (const auto& webhook : document.at("webhooks").as_object()) described.emplace(webhook.key());
  for (const auto& one : all_listed()) expected.insert(one.name);
  expected.emplace(outbox::kGapType);
  EXPECT_EQ(described, expected);
}

TEST(event_types, an_event_with_a_member_that_is_not_documented_is_a_problem) {
  auto example = documented_examples().at(0);
  example.at("data").as_object()["colour"] = "red";
  EXPECT_EQ(problems_of_event(example).size(), 1U);
  example.at("data").as_object().erase("colour");
  example.at("data").as_object().erase("txId");
  EXPECT_EQ(problems_of_event(example).size(), 1U);
}

}  // namespace
}  // namespace fencepost::test
