// Compares the names in C++ with those that the tables allow and the statements use.
#include <filesystem>
#include <regex>
#include <set>

#include "runtime/read_file.hpp"
#include "tests/support/source_dir.hpp"
#include "tx/model/attempt.hpp"
#include "tx/model/state.hpp"
#include "tx/model/sub_state.hpp"
#include "tx/store/protocol_test_support.hpp"

namespace fencepost::tx {
namespace {

using Names = std::set<std::string>;

Names captured(const std::string& text, const std::regex& pattern) {
  Names out;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it) {
    out.insert((*it)[1]);
  }
  return out;
}

template <class Table>
Names names_of(const Table& table) {
  Names out;
  for (const auto& row : table) out.emplace(row.name);
  return out;
}

class StoredNames : public ProtocolTest {
 protected:
  // The values that a column's CHECK lists.
  Names allowed(const std::string& constraint) {
    const auto text = admin.value<std::string>("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1",
                                               pg::Params::of(constraint));
    return captured(text, std::regex("'([A-Za-z_]+)'"));
  }
};

TEST_F(StoredNames, of_states_attempt_kinds_and_outcomes_are_those_that_the_tables_allow) {
  const auto states = kManagedTx.names();
  auto stored = allowed("tx_open_state_check");
  stored.merge(allowed("tx_ended_state_check"));
  stored.insert("CREATED");  // not stored: a transaction without a nonce
  EXPECT_EQ(stored, Names(states.begin(), states.end()));
  EXPECT_EQ(allowed("tx_attempt_kind_check"), names_of(kAttemptKinds));
  EXPECT_EQ(allowed("tx_attempt_outcome_check"), names_of(kAttemptOutcomes));
}

TEST_F(StoredNames, of_sub_states_in_the_statements_are_in_the_list) {
  Names used;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "src/tx/store")) {
    const auto name = entry.path().filename().string();
    if (!name.ends_with("_store.cpp")) continue;
    used.merge(captured(read_file(entry.path()), std::regex("sub_state (?:=|IS DISTINCT FROM) '([a-z_]+)'")));
  }
  EXPECT_GE(used.size(), 4U);
  for (const auto& name : used) EXPECT_TRUE(kSubStates.find(name)) << name;
}

}  // namespace
}  // namespace fencepost::tx
