// The HTTP API of timelocks with real contracts on a real chain.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/eventually.hpp"
#include "tests/support/timelocks.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

class TimelockApi : public ::testing::Test {
 protected:
  TimelockApi() { cluster_.mine(1); }

  void import(const std::string& address, const std::string& remark) {
    Answer answer;
    // The node may not have read its first block yet.
    const auto tried = eventually([&] {
      answer = cluster_.post(0, "/api/v1/timelocks", {{"chainId", 31337}, {"address", address}, {"remark", remark}});
      return answer.code() != "chain_not_ready";
    });
    if (!tried || answer.status != 201) throw Exception(internal("import", answer.body));
  }
  json::value get(const std::string& path) const {
    const auto answer = cluster_.get(0, path);
    if (answer.status != 200) throw Exception(internal("get", path + ": " + answer.body));
    return json::parse(answer.body);
  }
  json::array flows(const std::string& query = "") const { return get("/api/v1/flows" + query).at("items").as_array(); }
  json::value flow(const std::string& standard, const std::string& contract, const std::string& id) const {
    return get(fmt::format("/api/v1/flows/{}/31337/{}/{}", standard, contract, id));
  }
  bool listed(std::size_t count) const {
    return eventually([&] { return flows().size() == count; });
  }

  TxCluster cluster_{{.settings = {.more = "scanner: {confirmations: 0}\n"}, .anvil = {"--no-mining"}}};
  TimelockChain chain_{cluster_};
};

TEST_F(TimelockApi, a_queued_call_is_explained_and_its_history_shown) {
  const CompoundTimelock timelock(chain_, signer(0));
  import(timelock.address(), "Treasury");
  const TimelockCall call{recipient(1), 0, to_hex0x(encode({word(recipient(2)), word(std::uint64_t{5})}))};
  const std::string signature = "transfer(address,uint256)";
  const auto eta = chain_.now() + 3 * CompoundTimelock::kDay;
  const auto queued = timelock.queue(call, signature, eta);
  ASSERT_TRUE(listed(1)) << cluster_.describe();
  const auto id = CompoundTimelock::id(call, signature, eta);
  ASSERT_TRUE(eventually([&] { return flows().at(0).at("confirmed").as_bool(); })) << cluster_.describe();
  const auto shown = flow("compound", timelock.address(), id);
  EXPECT_EQ(shown.at("status").as_string(), "waiting");
  EXPECT_EQ(shown.at("eta").as_string(), std::to_string(eta));
  EXPECT_EQ(shown.at("queueTxHash").as_string(), queued);
  const auto& explained = shown.at("calls").at(0).at("explained");
  EXPECT_EQ(explained.at("source").as_string(), "signature");
  EXPECT_EQ(explained.at("arguments").at(0).at("value").as_string(), recipient(2));
  EXPECT_EQ(explained.at("arguments").at(1).at("value").as_string(), "5");
  EXPECT_EQ(shown.at("events").at(0).at("event").as_string(), "QueueTransaction");
  EXPECT_EQ(shown.at("events").at(0).at("from").as_string(), signer(0));
  EXPECT_EQ(shown.at("history").at(0).at("to").as_string(), "waiting");
  EXPECT_EQ(shown.at("generations").as_array().size(), 1U);
  for (const auto& q :
       {id, queued, recipient(1), timelock.address(), signer(0), std::string("treas"), std::string("transfer(")}) {
    EXPECT_EQ(flows("?q=" + q).size(), 1U) << q;
  }
  EXPECT_EQ(flows("?q=mint").size(), 0U);
  EXPECT_EQ(
      cluster_.get(0, fmt::format("/api/v1/flows/compound/31337/{}/{}?generation=2", timelock.address(), id)).code(),
      "no_such_flow");
}

TEST_F(TimelockApi, an_uploaded_abi_explains_calls_until_it_is_removed) {
  const OpenZeppelinTimelock timelock(chain_, signer(0), 100);
  import(timelock.address(), "");
  const TimelockCall call{recipient(1), 0, call_data("paint(uint256)", {word(std::uint64_t{7})})};
  timelock.schedule(call, salt(1), 1000);
  ASSERT_TRUE(listed(1)) << cluster_.describe();
  const auto id = OpenZeppelinTimelock::id(call, salt(1));
  const auto explained = [&] { return flow("openzeppelin", timelock.address(), id).at("calls").at(0).at("explained"); };
  EXPECT_TRUE(explained().is_null());
  const json::array abi{json::object{
      {"type", "function"}, {"name", "paint"}, {"inputs", {json::object{{"name", "colour"}, {"type", "uint256"}}}}}};
  const auto added = cluster_.post(0, "/api/v1/abis", {{"name", "Walls"}, {"abi", abi}, {"address", recipient(1)}});
  ASSERT_EQ(added.status, 201) << added.body;
  EXPECT_EQ(json::parse(added.body).at("functions").as_int64(), 1);
  EXPECT_EQ(explained().at("source").as_string(), "uploaded");
  EXPECT_EQ(explained().at("arguments").at(0).at("name").as_string(), "colour");
  const auto id_of_abi = std::string(json::parse(added.body).at("id").as_string());
  const auto removed = ask({"DELETE", cluster_.node(0).url("/api/v1/abis/" + id_of_abi), cluster_.key(), "", {}});
  EXPECT_EQ(removed.status, 204);
  EXPECT_TRUE(explained().is_null());
  EXPECT_EQ(flow("openzeppelin", timelock.address(), id).at("salt").as_string(), salt(1));
}

TEST_F(TimelockApi, a_flow_is_blocked_by_its_predecessor) {
  const OpenZeppelinTimelock timelock(chain_, signer(0), 100);
  import(timelock.address(), "");
  const TimelockCall first{recipient(1)}, second{recipient(2)};
  const auto before = OpenZeppelinTimelock::id(first, salt(1));
  timelock.schedule(first, salt(1), 100);
  timelock.schedule(second, salt(2), 100, before);
  ASSERT_TRUE(listed(2)) << cluster_.describe();
  const auto id = OpenZeppelinTimelock::id(second, salt(2), before);
  EXPECT_EQ(flow("openzeppelin", timelock.address(), id).at("blockedBy").as_string(), before);
  chain_.pass(200);
  ASSERT_TRUE(eventually([&] { return flows("?status=ready").size() == 2; })) << cluster_.describe();
  EXPECT_EQ(flow("openzeppelin", timelock.address(), id).at("blockedBy").as_string(), before);
  timelock.execute(first, salt(1));
  ASSERT_TRUE(eventually([&] { return flows("?status=executed").size() == 1; })) << cluster_.describe();
  EXPECT_TRUE(flow("openzeppelin", timelock.address(), id).at("blockedBy").is_null());
  const auto stats = get(fmt::format("/api/v1/timelocks/31337/{}/stats", timelock.address()));
  EXPECT_EQ(stats.at("flows").at("executed").as_int64(), 1);
  EXPECT_EQ(stats.at("flows").at("ready").as_int64(), 1);
  EXPECT_EQ(stats.at("queuedLast30Days").as_int64(), 2);
  EXPECT_EQ(stats.at("lastEvent").at("event").as_string(), "CallExecuted");
  // The constructor granted roles.
  const auto rules = get(fmt::format("/api/v1/timelocks/31337/{}/events?limit=1", timelock.address()));
  EXPECT_EQ(rules.at("items").as_array().size(), 1U);
  EXPECT_TRUE(rules.at("nextCursor").is_string());
}

TEST_F(TimelockApi, a_refusal_shows_the_beginning_of_what_a_contract_answered) {
  // Answers every call with 4096 zero bytes.
  cluster_.rpc("anvil_setCode", {recipient(5), "0x6110006000f3"});
  const auto refused = cluster_.post(0, "/api/v1/timelocks", {{"chainId", 31337}, {"address", recipient(5)}});
  EXPECT_EQ(refused.status, 422);
  const auto problem = json::parse(refused.body);
  EXPECT_EQ(problem.at("code").as_string(), "not_a_timelock");
  EXPECT_THAT(refused.body, HasSubstr("delay(): 0x" + std::string(180, '0')));
  EXPECT_THAT(refused.body, HasSubstr("getMinDelay(): 0x" + std::string(180, '0')));
  EXPECT_LT(refused.body.size(), 2'000U) << refused.body;
}

TEST_F(TimelockApi, a_calendar_has_the_due_time_and_the_expiry_and_takes_the_key_in_its_path) {
  const CompoundTimelock timelock(chain_, signer(0));
  import(timelock.address(), "Treasury");
  const TimelockCall call{recipient(1), 0, "0x"};
  const auto eta = chain_.now() + 3 * CompoundTimelock::kDay;
  timelock.queue(call, "sweep()", eta);
  ASSERT_TRUE(listed(1)) << cluster_.describe();
  const auto calendar = cluster_.get(0, "/api/v1/flows.ics");
  EXPECT_EQ(calendar.status, 200);
  EXPECT_THAT(calendar.body, HasSubstr("SUMMARY:Treasury: sweep() can be executed\r\n"));
  EXPECT_THAT(calendar.body, HasSubstr("SUMMARY:Treasury: sweep() expires\r\n"));
  const auto by_path = ask({"GET", cluster_.node(0).url("/calendar/" + cluster_.key() + "/flows.ics"), "", "", {}});
  EXPECT_EQ(by_path.body, calendar.body);
  EXPECT_EQ(ask({"GET", cluster_.node(0).url("/calendar/fp_nonsense/flows.ics"), "", "", {}}).status, 401U);
  EXPECT_THAT(cluster_.node(0).output(), Not(HasSubstr(cluster_.key())));
  timelock.cancel(call, "sweep()", eta);
  EXPECT_TRUE(eventually([&] { return !cluster_.get(0, "/api/v1/flows.ics").body.contains("VEVENT"); }));
}

}  // namespace
}  // namespace fencepost::test
