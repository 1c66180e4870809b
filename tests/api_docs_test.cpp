// The tables of docs/api.md against the code: a state, a sub state or a member of a payload that is added gets its row.
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "base/json_reader.hpp"
#include "runtime/read_file.hpp"
#include "tests/support/source_dir.hpp"
#include "tx/model/payload.hpp"
#include "tx/model/state.hpp"
#include "tx/model/sub_state.hpp"

namespace fencepost::test {
namespace {

using Names = std::set<std::string>;

std::string api_page() {
  return read_file(source_dir() / "docs/api.md");
}

// The first cells of the table whose head begins with `| head |`, without their backquotes.
Names first_column(const std::string& page, const std::string& head) {
  Names names;
  auto at = page.find("\n| " + head + " |");
  EXPECT_NE(at, std::string::npos) << head;
  for (at = page.find('\n', at + 1); at != std::string::npos && page[at + 1] == '|'; at = page.find('\n', at + 1)) {
    static const std::regex first(R"(\| `([A-Za-z_]+)` \|)");
    std::smatch match;
    const auto line = page.substr(at + 1, page.find('\n', at + 1) - at - 1);
    if (std::regex_search(line, match, first, std::regex_constants::match_continuous)) names.insert(match[1]);
  }
  return names;
}

TEST(api_docs, every_state_has_its_row) {
  const auto states = tx::kManagedTx.names();
  EXPECT_EQ(first_column(api_page(), "`state`"), Names(states.begin(), states.end()));
}

TEST(api_docs, every_sub_state_has_its_row) {
  Names sub_states;
  for (const auto& row : tx::kSubStates) {
    if (!row.name.empty()) sub_states.emplace(row.name);
  }
  EXPECT_EQ(first_column(api_page(), "`subState`"), sub_states);
}

TEST(api_docs, every_member_of_a_payload_has_its_row) {
  Names members;
  const auto page = api_page();
  for (const auto& name : first_column(page, "member")) {
    // The parser knows each documented member: an array is the wrong type for all of them, and not an unknown member.
    const boost::json::value body = boost::json::object{{name, boost::json::array{}}};
    try {
      tx::read_payload(JsonReader(body, "payload"));
      ADD_FAILURE() << name;
    } catch (const Exception& e) {
      EXPECT_FALSE(e.error().message.contains("unknown field")) << name << ": " << e.error().message;
    }
    members.insert(name);
  }
  // And the other way round: the canonical form of a payload that has all of them.
  const tx::Payload all{.to = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
                        .value = Uint256(1),
                        .data = "0x00",
                        .gas = 50'000,
                        .gas_price = Uint256(1),
                        .max_fee_per_gas = Uint256(1),
                        .max_priority_fee_per_gas = Uint256(1),
                        .fee_ceiling_per_gas = Uint256(1),
                        .fee_ceiling_total = Uint256(1)};
  Names known;
  for (const auto& member : boost::json::parse(all.canonical()).as_object()) known.emplace(member.key());
  EXPECT_EQ(members, known);
}

}  // namespace
}  // namespace fencepost::test
