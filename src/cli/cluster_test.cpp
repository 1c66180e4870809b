#include "cli/cluster.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

TEST(cluster, a_chain_has_a_line_for_each_endpoint) {
  const auto chains = json::parse(R"([{"chainId": 1, "name": "mainnet", "synced": false, "confirmationsRequired": "20",
      "head": {"number": 12, "time": "2026-11-15T19:45:18Z"},
      "endpoints": [{"label": "a:1", "healthy": true, "head": 12, "latencyMs": 3.25, "consecutiveFailures": 0},
                    {"label": "b:1", "healthy": false, "behind": true, "head": 9, "latencyMs": 0}],
      "submitEndpoints": [{"label": "c:1", "healthy": false, "wrongChain": true, "head": null},
                          {"label": "d:1", "healthy": false, "consecutiveFailures": 3, "head": null}]}])");
  EXPECT_EQ(
      chain_table(chains.as_array()),
      "CHAIN  NAME     HEAD  HEAD TIME (UTC)      SYNCED  FINAL AFTER  ENDPOINT  USE     STATE        AT BLOCK  MS\n"
      "1      mainnet  12    2026-11-15 19:45:18  no      20           a:1       read    ok           12        3.2\n"
      "1      mainnet  12    2026-11-15 19:45:18  no      20           b:1       read    behind       9\n"
      "1      mainnet  12    2026-11-15 19:45:18  no      20           c:1       submit  wrong chain\n"
      "1      mainnet  12    2026-11-15 19:45:18  no      20           d:1       submit  failing (3)\n");
  EXPECT_EQ(chain_table(json::array{json::object{{"chainId", 1}}}).find('1'), std::string::npos)
      << "an answer without endpoints shows none";
}

TEST(cluster, a_node_that_does_not_forward_has_no_url) {
  const auto nodes = json::parse(R"([{"nodeId": "a-1f", "advertiseUrl": null, "version": "0.1.0", "alive": true,
      "leases": 3, "startedAt": "2026-11-15T19:45:18.123Z", "heartbeatAt": "2026-11-15T19:46:18.123Z"}])");
  EXPECT_EQ(node_table(nodes.as_array()),
            "NODE  ALIVE  LEASES  VERSION  URL FOR OTHER NODES  HEARTBEAT (UTC)      STARTED (UTC)\n"
            "a-1f  yes    3       0.1.0    none                 2026-11-15 19:46:18  2026-11-15 19:45:18\n");
}

TEST(cluster, a_caller_without_restrictions_may_use_everything) {
  EXPECT_EQ(caller_details(json::parse(R"({"keyId": "k", "label": "billing", "scopes": ["tx:read", "tx:write"],
                                           "signers": ["0xab"], "guilds": null, "contracts": null,
                                           "url": "http://n:1", "from": "--url"})")),
            "node       http://n:1\n"
            "from       --url\n"
            "key id     k\n"
            "label      billing\n"
            "scopes     tx:read, tx:write\n"
            "signers    0xab\n"
            "guilds     every\n"
            "contracts  every\n");
}

}  // namespace
}  // namespace fencepost::cli
