#include "cli/timelock/flow_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "cli/timelock/flows.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

constexpr auto kFlow = R"json({
  "standard": "openzeppelin", "chainId": 1, "contractAddress": "0x6d903f6003cca6255d85cca4d3b5e5146dc33925",
  "flowId": "0x11", "generation": 2, "status": "waiting", "confirmed": true, "removed": false,
  "initiatorAddress": "0xc0da02939e1441f497fd74f78ce7decb17b66529", "viaAddress": null, "eta": "1794772800",
  "dueAt": "2026-11-15T20:00:00.000000Z", "expiredAt": null, "delay": "3600", "predecessor": null, "blockedBy": null,
  "queueTxHash": "0xaa", "queuedAt": "2026-11-15T19:00:00.000000Z", "callCount": 1,
  "calls": [{"index": 0, "target": "0x22", "value": "1000000000000000000", "signature": null, "data": "0xa9059cbb",
             "explained": {"function": "transfer", "signature": "transfer(address,uint256)", "source": "built in",
                           "arguments": [{"name": "to", "type": "address", "value": "0x33"},
                                         {"name": "", "type": "uint256", "value": "5"}]}}],
  "history": [{"at": "2026-11-15T19:00:05.000000Z", "from": null, "to": "waiting", "node": "n1",
               "why": "queued on chain"}],
  "generations": [{"generation": 1, "status": "cancelled", "removed": false},
                  {"generation": 2, "status": "waiting", "removed": false}]
})json";

TEST(timelock_flow_view, one_flow_is_shown_in_full) {
  EXPECT_EQ(flow_details(json::parse(kFlow)),
            "flow        0x11\n"
            "generation  2\n"
            "status      waiting\n"
            "standard    openzeppelin\n"
            "chain       1\n"
            "contract    0x6d903f6003cca6255d85cca4d3b5e5146dc33925\n"
            "initiator   0xc0da02939e1441f497fd74f78ce7decb17b66529\n"
            "due         2026-11-15 20:00:00 UTC\n"
            "delay       3600 s (1h)\n"
            "queued      2026-11-15 19:00:00 UTC\n"
            "queued by   0xaa\n"
            "\n"
            "call          0\n"
            "  target      0x22\n"
            "  value       1 ether\n"
            "  function    transfer(address,uint256)\n"
            "  known from  built in\n"
            "  argument    address to = 0x33\n"
            "  argument    uint256 (unnamed) = 5\n"
            "  data        0xa9059cbb\n"
            "\n"
            "AT (UTC)             FROM  TO       NODE  WHY\n"
            "2026-11-15 19:00:05        waiting  n1    queued on chain\n"
            "\n"
            "GENERATION  STATUS\n"
            "1           cancelled\n"
            "2           waiting\n");
}

TEST(timelock_flow_view, the_table_has_the_whole_id) {
  EXPECT_EQ(flow_table({json::parse(kFlow)}),
            "STATUS   STANDARD      CHAIN  CONTRACT         INITIATOR        GEN  CALLS  DUE (UTC)            "
            "QUEUED (UTC)         FLOW ID\n"
            "waiting  openzeppelin  1      0x6d903f60…3925  0xc0da0293…6529  2    1      2026-11-15 20:00:00  "
            "2026-11-15 19:00:00  0x11\n");
}

TEST(timelock_flow_view, the_status_says_what_is_not_certain) {
  auto flow = json::parse(kFlow);
  flow.at("blockedBy") = "0x44";
  EXPECT_EQ(flow_status_text(flow), "waiting (blocked)");
  flow.at("confirmed") = false;
  EXPECT_EQ(flow_status_text(flow), "waiting (not confirmed)");
  flow.at("removed") = true;
  EXPECT_EQ(flow_status_text(flow), "waiting (removed by a reorg)");
}

TEST(timelock_flow_view, a_time_that_no_calendar_has_is_the_number_of_the_contract) {
  auto flow = json::parse(kFlow);
  flow.at("dueAt") = nullptr;
  flow.at("eta") = "57896044618658097711785492504343953926634992332820282019728792003956564819968";
  EXPECT_THAT(flow_details(flow), HasSubstr("due         never (57896044618658097711785…"));
  EXPECT_THAT(flow_table({flow}), HasSubstr("  never "));
}

TEST(timelock_flow_view, text_of_a_chain_cannot_control_the_terminal) {
  auto flow = json::parse(kFlow);
  flow.at("calls").at(0).at("explained") = nullptr;
  flow.at("calls").at(0).at("signature") = "\x1b[2Jevil()";
  const auto shown = flow_details(flow);
  EXPECT_THAT(shown, HasSubstr("[2Jevil()"));
  EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
}

TEST(timelock_flow_view, any_json_is_survived) {
  for (const auto* text : {"{}", "null", R"({"calls": 1, "history": {}, "generations": "x", "eta": []})"}) {
    EXPECT_NO_THROW(flow_details(json::parse(text))) << text;
    EXPECT_NO_THROW(flow_table({json::parse(text)})) << text;
  }
}

TEST(timelock_flows, the_query_has_what_was_asked_for) {
  FlowListFlags flags;
  EXPECT_EQ(flow_list_target(flags, 50, ""), "/api/v1/flows?limit=50");
  flags.status = "waiting,ready";
  flags.chain_id = 10;
  flags.contract = "0xab";
  flags.initiator = "0xcd";
  EXPECT_EQ(flow_list_target(flags, 7, "c/1"),
            "/api/v1/flows?limit=7&status=waiting%2Cready&chainId=10&contract=0xab&initiator=0xcd&cursor=c%2F1");
  FlowListFlags upcoming;
  upcoming.status = "waiting";
  upcoming.sort = "eta";
  EXPECT_EQ(flow_list_target(upcoming, 50, ""), "/api/v1/flows?limit=50&status=waiting&sort=eta");
}

}  // namespace
}  // namespace fencepost::cli
