#include "cli/signer.hpp"

#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

TEST(signer, signers_show_their_leader_and_what_is_wrong) {
  const auto signers = json::parse(R"([
    {"chainId": 1, "signer": "0xaa", "hasKey": true, "leader": "a-1", "fencingToken": 3, "nextNonce": 8,
     "chainNonce": 9, "balance": "1500000000000000000", "needsReconcile": true, "reconcileReason": "undone",
     "counts": {"TRACKING": 2, "STUCK": 1},
     "oldestOpen": "2026-11-15T19:45:18.123456Z"},
    {"chainId": 1, "signer": "0xbb", "leader": null, "fencingToken": 0, "nextNonce": null, "balance": null,
     "needsReconcile": false, "counts": {}},
    {"chainId": 1, "signer": "0xcc"}])");
  EXPECT_EQ(signer_table(signers.as_array()),
            "SIGNER  CHAIN  LEADER  TOKEN  NEXT  ON CHAIN  BALANCE    OPEN                 OLDEST OPEN (UTC)\n"
            "0xaa    1      a-1     3      8     9         1.5 ether  2 TRACKING, 1 STUCK  2026-11-15 19:45:18  "
            "NEEDS RECONCILE: undone\n"
            "0xbb    1              0                      ?\n"
            "0xcc    1\n");
}

// A signer is an address on a chain, and its balance is what a newcomer looks for.
TEST(signer, a_narrow_terminal_shows_chain_and_balance_of_each_signer) {
  for (const auto* balance : {"9999999950000000000000", "9999999957893212121212"}) {
    const json::array signers{json::object{{"chainId", 31337},
                                           {"signer", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"},
                                           {"leader", "node1/3b2f2c2a"},
                                           {"balance", balance},
                                           {"needsReconcile", false},
                                           {"counts", json::object{{"ALLOCATED", 2}, {"TRACKING", 14}}}}};
    const auto table = signer_table(signers, 80);
    EXPECT_TRUE(table.contains(" CHAIN ")) << table;
    EXPECT_TRUE(table.contains(" BALANCE")) << table;
  }
}

}  // namespace
}  // namespace fencepost::cli
