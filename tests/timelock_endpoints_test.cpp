// One chain with two endpoints, of which the preferred one lags, lies or answers nonsense; and endpoints that refuse
// the logs of a single block. Nothing is missed, and the scan goes on.
#include "tests/support/timelock_faults.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

const std::string kTooMany = "query returned more than 10000 results";

class TimelockEndpoints : public TimelockFaults {
 protected:
  // Endpoint 0 is the rewriter, endpoint 1 anvil itself.
  void start_two() { start(0, 1, {.rewritten = true, .second_endpoint = true}); }
  RpcRewriter& first() { return cluster_->chain_rewriter(0); }
  bool all_waiting(const std::vector<std::string>& ids) const {
    return std::ranges::all_of(ids, [&](const std::string& id) { return becomes(id, "waiting"); });
  }
  std::size_t warnings() const {
    const auto output = cluster_->node(0).output();
    const std::string text = "logs are read from another endpoint";
    std::size_t count = 0;
    for (auto at = output.find(text); at != std::string::npos; at = output.find(text, at + 1)) ++count;
    return count;
  }
  // Refuses requests for logs that `refuses` is true for, as having too many results.
  template <class Refuses>
  void refuse_logs(Refuses refuses) {
    first().change("eth_getLogs", [refuses](const json::object& call, json::object reply) {
      if (!refuses(call.at("params").at(0).as_object())) return reply;
      reply.erase("result");
      reply["error"] = {{"code", -32005}, {"message", kTooMany}};
      return reply;
    });
  }
  // Ranges of logs fail if one of these contracts is among those that are asked for.
  void fail_ranges_of(std::vector<std::string> bad) {
    first().change("eth_getLogs", [bad = std::move(bad)](const json::object& call, json::object reply) {
      const auto& filter = call.at("params").at(0).as_object();
      const auto is_bad = [&](const json::value& asked) {
        return std::ranges::find(bad, std::string(asked.as_string())) != bad.end();
      };
      if (!filter.contains("fromBlock") || std::ranges::none_of(filter.at("address").as_array(), is_bad)) return reply;
      reply.erase("result");
      reply["error"] = {{"code", -32000}, {"message", "internal error"}};
      return reply;
    });
  }
};

TEST_F(TimelockEndpoints, an_endpoint_that_is_stuck_holds_up_neither_new_blocks_nor_a_range_of_old_ones) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  ASSERT_TRUE(scanned()) << describe();
  first().lag(cluster_->head());
  ASSERT_TRUE(all_waiting(schedule(timelock, 3))) << describe();
  ASSERT_TRUE(scanned()) << describe();
  // After a downtime: the first endpoint does not even have the last scanned block, which is no reorg.
  cluster_->node(0).kill();
  auto ids = schedule(timelock, 3, 10);
  cluster_->mine(400);
  for (const auto& id : schedule(timelock, 2, 20)) ids.push_back(id);
  cluster_->node(0).start();
  ASSERT_TRUE(all_waiting(ids)) << describe();
  EXPECT_EQ(flows(), "8");
  EXPECT_EQ(announced_once(), "8");
}

TEST_F(TimelockEndpoints, an_endpoint_that_withholds_logs_is_replaced_by_the_other) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  ASSERT_TRUE(scanned()) << describe();
  first().change("eth_getLogs", [](const json::object& call, json::object reply) {
    if (call.at("params").at(0).as_object().contains("blockHash")) reply["result"] = json::array();
    return reply;
  });
  for (std::uint64_t round = 0; round < 5; ++round) {
    ASSERT_TRUE(all_waiting(schedule(timelock, 2, 1 + round * 10))) << describe();
  }
  EXPECT_EQ(flows(), "10");
  EXPECT_EQ(announced_once(), "10");
  // Once by the scanner of new blocks and perhaps once by that of the history.
  EXPECT_LE(cluster_->node(0).metric("timelock_logs_withheld_total"), 2) << "the liar was asked again";
  EXPECT_GE(warnings(), 1U) << describe();
  EXPECT_LE(warnings(), 2U) << describe();
}

TEST_F(TimelockEndpoints, an_endpoint_that_withholds_the_logs_of_a_range_is_replaced_by_the_other) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  const auto ids = schedule(timelock, 3);
  cluster_->mine(600);
  first().change("eth_getLogs", [](const json::object&, json::object reply) {
    reply["result"] = json::array();
    return reply;
  });
  import(timelock.address());
  ASSERT_TRUE(all_waiting(ids)) << describe();
  EXPECT_GE(cluster_->node(0).metric("timelock_logs_withheld_total"), 1);
}

TEST_F(TimelockEndpoints, no_logs_are_confirmed_by_an_endpoint_that_only_gives_small_ranges) {
  start(0, 1, {.rewritten = true, .second_endpoint = true, .second_rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  cluster_->mine(250);  // the second endpoint truly has nothing in its first ranges
  const auto ids = schedule(timelock, 3);
  cluster_->mine(600);
  first().change("eth_getLogs", [](const json::object& call, json::object reply) {
    if (call.at("params").at(0).as_object().contains("fromBlock")) reply["result"] = json::array();
    return reply;
  });
  cluster_->second_rewriter().change(
      "eth_getLogs", [](const json::object& call, json::object reply) { return limited(call, std::move(reply), 100); });
  import(timelock.address(), {{"fromBlock", 1}});
  ASSERT_TRUE(all_waiting(ids)) << describe();
  EXPECT_GE(cluster_->node(0).metric("timelock_logs_withheld_total"), 1);
}

TEST_F(TimelockEndpoints, no_logs_are_not_contradicted_by_an_endpoint_on_another_branch) {
  start(0, 1, {.rewritten = true, .second_endpoint = true, .second_rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  schedule(timelock, 1);
  const auto log =
      cluster_->rpc("eth_getLogs", {{{"fromBlock", "earliest"}, {"address", timelock.address()}}}).as_array().back();
  const auto from = cluster_->head() + 1;
  cluster_->mine(600);
  cluster_->second_rewriter().change("eth_getBlockByNumber", [](const json::object&, json::object reply) {
    if (auto* block = reply["result"].if_object()) (*block)["hash"] = "0x" + std::string(64, 'e');
    return reply;
  });
  cluster_->second_rewriter().change("eth_getLogs", [log](const json::object& call, json::object reply) {
    auto other = log.as_object();
    other["blockNumber"] = call.at("params").at(0).at("fromBlock");
    reply["result"] = json::array{std::move(other)};
    return reply;
  });
  import(timelock.address(), {{"fromBlock", from}});
  ASSERT_TRUE(cluster_->sql_becomes("SELECT history_done_at IS NOT NULL FROM timelock", "t", kPatience)) << describe();
  EXPECT_EQ(cluster_->node(0).metric("timelock_logs_withheld_total"), 0);
  EXPECT_EQ(flows(), "0");
}

TEST_F(TimelockEndpoints, a_log_of_a_time_after_its_range_gets_the_time_of_its_block) {
  start(0, 1, {.rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  const auto ids = schedule(timelock, 3);
  const auto time = number(cluster_->rpc("eth_getBlockByNumber", {"latest", false}).at("timestamp"));
  cluster_->mine(600);
  first().change("eth_getLogs", [](const json::object&, json::object reply) {
    for (auto& log : reply["result"].as_array()) log.as_object()["blockTimestamp"] = "0xffffffff";  // in 2106
    return reply;
  });
  import(timelock.address(), {{"fromBlock", 1}});
  ASSERT_TRUE(all_waiting(ids)) << describe();
  EXPECT_EQ(cluster_->sql(fmt::format("SELECT eta FROM timelock_transaction_flows WHERE flow_id = '{}'", ids.back())),
            std::to_string(time + 100'000));
}

TEST_F(TimelockEndpoints, logs_that_are_withheld_are_found_in_blocks_whose_headers_are_from_the_database) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  const auto ids = schedule(timelock, 3);
  cluster_->mine(1);
  ASSERT_TRUE(cluster_->sql_becomes("SELECT max(number) FROM chain_header", std::to_string(cluster_->head())));
  ASSERT_EQ(cluster_->node(0).stop().code, 0) << describe();
  // The endpoint has no block but the head, so the follower takes the others from the database, without their blooms.
  first().change("eth_getBlockByNumber", [](const json::object& call, json::object reply) {
    if (call.at("params").at(0) != "latest") reply["result"] = nullptr;
    return reply;
  });
  cluster_->node(0).start();
  ASSERT_TRUE(eventually([&] { return cluster_->node(0).metric("chain_head_block") == cluster_->head(); }));
  first().pass_all();
  first().change("eth_getLogs", [](const json::object&, json::object reply) {
    reply["result"] = json::array();
    return reply;
  });
  import(timelock.address(), {{"fromBlock", 1}});
  ASSERT_TRUE(all_waiting(ids)) << describe();
  EXPECT_GE(cluster_->node(0).metric("timelock_logs_withheld_total"), 1);
}

TEST_F(TimelockEndpoints, an_endpoint_that_answers_nonsense_is_replaced_by_the_other) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  const OpenZeppelinTimelock old(*chain_, signer(0), 100);
  auto ids = schedule(old, 3, 10);
  cluster_->mine(600);
  import(timelock.address());
  ASSERT_TRUE(scanned()) << describe();
  first().change("eth_getLogs", [](const json::object&, json::object reply) {
    reply["result"] = "nonsense";
    return reply;
  });
  import(old.address());
  for (const auto& id : schedule(timelock, 3)) ids.push_back(id);
  ASSERT_TRUE(all_waiting(ids)) << describe();
  EXPECT_GE(first().changed("eth_getLogs"), 1U);
  EXPECT_EQ(announced_once(), "6");
}

TEST_F(TimelockEndpoints, an_endpoint_without_the_transaction_of_a_log_is_replaced_by_the_other) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  ASSERT_TRUE(scanned()) << describe();
  first().answer_null("eth_getTransactionByHash");
  ASSERT_TRUE(all_waiting(schedule(timelock, 3))) << describe();
  EXPECT_EQ(announced_once(), "3");
}

TEST_F(TimelockEndpoints, other_events_of_a_contract_are_not_asked_for) {
  start(0, 1, {.rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  ASSERT_TRUE(scanned()) << describe();
  refuse_logs([](const json::object& filter) { return !filter.contains("topics"); });
  ASSERT_TRUE(all_waiting(schedule(timelock, 2))) << describe();
}

TEST_F(TimelockEndpoints, an_endpoint_that_ignores_topics_is_understood) {
  start(0, 1, {.rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  const auto noisy = recipient(9);
  // Answers every call with a zero, and logs a topic of its own on a transaction without data.
  const std::string topic(64, '1');
  cluster_->rpc("anvil_setCode", {noisy, "0x36602b577f" + topic + "60006000a1005b60206000f3"});
  cluster_->mine(1);
  import(timelock.address());
  import(noisy, {{"standard", "openzeppelin"}});
  ASSERT_TRUE(scanned()) << describe();
  first().change("eth_getLogs", [&](const json::object& call, json::object reply) {
    auto filter = call.at("params").at(0).as_object();
    filter.erase("topics");
    reply["result"] = cluster_->rpc("eth_getLogs", {filter});
    return reply;
  });
  chain_->send(signer(0), noisy, "0x");
  ASSERT_TRUE(all_waiting(schedule(timelock, 2))) << describe();
  chain_->send(signer(0), noisy, "0x");
  ASSERT_TRUE(scanned()) << describe();
  EXPECT_EQ(cluster_->node(0).metric("timelock_logs_withheld_total"), 0);
}

TEST_F(TimelockEndpoints, a_block_with_too_many_logs_is_asked_for_by_fewer_contracts) {
  start(0, 1, {.rewritten = true});
  std::vector<OpenZeppelinTimelock> timelocks;
  timelocks.reserve(3);
  for (int i = 0; i < 3; ++i) timelocks.emplace_back(*chain_, signer(0), 100);
  std::vector<std::string> ids;
  ids.reserve(3);
  for (std::uint64_t i = 0; i < 3; ++i) ids.push_back(schedule(timelocks[i], 1, i).front());
  cluster_->mine(300);  // each block below the window is read alone
  // Neither a range nor two contracts at once.
  refuse_logs([](const json::object& filter) {
    return filter.contains("fromBlock") || filter.at("address").as_array().size() > 1;
  });
  for (const auto& timelock : timelocks) import(timelock.address(), {{"fromBlock", 1}});
  for (std::uint64_t i = 0; i < 3; ++i) ids.push_back(schedule(timelocks[i], 1, 10 + i).front());
  ASSERT_TRUE(all_waiting(ids)) << describe();
  EXPECT_EQ(flows(), "6");
  EXPECT_EQ(announced_once(), "6");
  EXPECT_EQ(cluster_->node(0).metric("timelock_blocks_by_receipts_total"), 0);
}

TEST_F(TimelockEndpoints, logs_that_are_refused_for_one_contract_in_one_block_are_taken_from_receipts) {
  start(0, 1, {.rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  auto ids = schedule(timelock, 2);
  cluster_->mine(300);  // each block below the window is read alone
  refuse_logs([](const json::object&) { return true; });
  import(timelock.address(), {{"fromBlock", 1}});
  for (const auto& id : schedule(timelock, 2, 10)) ids.push_back(id);
  ASSERT_TRUE(all_waiting(ids)) << describe();
  EXPECT_EQ(flows(), "4");
  EXPECT_EQ(announced_once(), "4");
  EXPECT_GE(cluster_->node(0).metric("timelock_blocks_by_receipts_total"), 4);
  // Without receipts the error stands, and nothing is skipped.
  first().answer_null("eth_getTransactionReceipt");
  first().answer_null("eth_getBlockReceipts");
  ids = schedule(timelock, 1, 20);
  ASSERT_TRUE(eventually([&] {
    return cluster_->sql("SELECT coalesce(last_error, '') FROM timelock_scan").contains("logs_refused");
  })) << describe();
  first().pass_all();
  ASSERT_TRUE(all_waiting(ids)) << describe();
}

TEST_F(TimelockEndpoints, a_bare_limit_makes_the_range_smaller) {
  start(0, 1, {.rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  const auto ids = schedule(timelock, 3);
  cluster_->mine(600);
  first().change("eth_getLogs", [](const json::object& call, json::object reply) {
    reply = limited(call, std::move(reply), 100);
    if (reply.contains("error")) reply["error"] = {{"code", -32005}, {"message", "limit exceeded"}};
    return reply;
  });
  import(timelock.address());
  ASSERT_TRUE(all_waiting(ids)) << describe();
}

TEST_F(TimelockEndpoints, a_contract_whose_history_fails_does_not_hold_up_the_others) {
  start(0, 1, {.rewritten = true});
  const OpenZeppelinTimelock good(*chain_, signer(0), 100);
  const OpenZeppelinTimelock bad(*chain_, signer(0), 100);
  auto ids = schedule(good, 2);
  const auto late = schedule(bad, 1, 10);
  for (const auto& id : schedule(good, 2, 20)) ids.push_back(id);
  cluster_->mine(600);
  fail_ranges_of({bad.address()});
  import(good.address(), {{"fromBlock", 1}});
  import(bad.address(), {{"fromBlock", 1}});
  ASSERT_TRUE(all_waiting(ids)) << describe();
  EXPECT_EQ(flows(), "4");
  first().pass_all();
  ASSERT_TRUE(eventually([&] { return announced(late.front()) == "waiting"; }, std::chrono::seconds(60))) << describe();
  EXPECT_EQ(announced_once(), "5");
}

TEST_F(TimelockEndpoints, a_group_of_contracts_is_split_while_another_contract_keeps_failing) {
  start(0, 1, {.rewritten = true});
  const OpenZeppelinTimelock good(*chain_, signer(0), 100);
  const OpenZeppelinTimelock bad(*chain_, signer(0), 100);
  const OpenZeppelinTimelock worse(*chain_, signer(0), 100);
  const auto ids = schedule(good, 2);
  cluster_->mine(600);
  fail_ranges_of({bad.address(), worse.address()});
  import(worse.address(), {{"fromBlock", 1}});
  ASSERT_TRUE(eventually([&] { return first().changed("eth_getLogs") >= 4; })) << describe();  // it is a suspect now
  import(bad.address(), {{"fromBlock", 1}});
  import(good.address(), {{"fromBlock", 1}});
  ASSERT_TRUE(all_waiting(ids)) << describe();
  EXPECT_EQ(flows(), "2");
}

}  // namespace
}  // namespace fencepost::test
