// Compares the lists of event types with the events that the sources append and with docs/events.md.
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/read_file.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/source_dir.hpp"
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
  const std::regex in_sql("'((?:Tx|Transfer)[A-Z][A-Za-z]*)'");
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
  const std::regex row(R"(^\| `((?:Tx|Transfer)[A-Z][A-Za-z]*)` \| ([^|]*) \| [^|]+ \|$)");
  for (std::string line; std::getline(lines, line);) {
    if (std::smatch found; std::regex_match(line, found, row)) documented.push_back({found[1], found[2]});
  }
  EXPECT_EQ(documented, all_listed());
}

}  // namespace
}  // namespace fencepost::test
