// Endpoints that lie, lag, limit or fail, reorgs, and nodes that die: nothing is missed, and nothing is announced
// twice.
#include "tests/support/timelock_faults.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

TEST_F(TimelockFaults, an_endpoint_that_withholds_logs_holds_the_scan_up_and_nothing_is_missed) {
  start(0, 1, {.rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  ASSERT_TRUE(scanned()) << describe();
  auto& endpoint = cluster_->chain_rewriter(0);
  endpoint.change("eth_getLogs", [](const json::object&, json::object reply) {
    reply["result"] = json::array();
    return reply;
  });
  const auto ids = schedule(timelock, 1);
  ASSERT_TRUE(eventually([&] { return cluster_->node(0).metric("timelock_logs_withheld_total") >= 1; })) << describe();
  cluster_->mine(3);
  EXPECT_EQ(flows(), "0");
  EXPECT_NE(cluster_->sql("SELECT last_error FROM timelock_scan").find("logs_withheld"), std::string::npos);
  endpoint.pass_all();
  ASSERT_TRUE(becomes(ids[0], "waiting")) << describe();
  ASSERT_TRUE(eventually([&] { return cluster_->sql("SELECT last_error IS NULL FROM timelock_scan") == "t"; }));
}

TEST_F(TimelockFaults, history_is_read_in_ranges_that_the_endpoint_accepts) {
  start(0, 1, {.rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  const auto ids = schedule(timelock, 5);
  cluster_->mine(700);  // beyond the follower's window
  auto& endpoint = cluster_->chain_rewriter(0);
  endpoint.change("eth_getLogs",
                  [](const json::object& call, json::object reply) { return limited(call, std::move(reply), 37); });
  import(timelock.address());
  for (const auto& id : ids) ASSERT_TRUE(becomes(id, "waiting")) << describe();
  EXPECT_GT(endpoint.changed("eth_getLogs"), 0U);
  EXPECT_EQ(flows(), "5");
}

TEST_F(TimelockFaults, an_endpoint_that_lags_or_errs_delays_the_scan_only) {
  start(0, 1, {.rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  ASSERT_TRUE(scanned()) << describe();
  auto& endpoint = cluster_->chain_rewriter(0);
  endpoint.answer_error("eth_getLogs", -32000, "internal error");
  auto ids = schedule(timelock, 2);
  ASSERT_TRUE(eventually([&] { return endpoint.changed("eth_getLogs") >= 2; })) << describe();
  EXPECT_EQ(flows(), "0");
  endpoint.pass_all();
  for (const auto& id : ids) ASSERT_TRUE(becomes(id, "waiting")) << describe();
  endpoint.lag(cluster_->head());
  ids = schedule(timelock, 2, 10);
  endpoint.lag(std::nullopt);
  for (const auto& id : ids) ASSERT_TRUE(becomes(id, "waiting")) << describe();
  // A transaction that the endpoint does not find holds up its block, too.
  endpoint.answer_null("eth_getTransactionByHash");
  ids = schedule(timelock, 1, 20);
  ASSERT_TRUE(eventually([&] { return endpoint.changed("eth_getTransactionByHash") >= 1; })) << describe();
  EXPECT_EQ(flows(), "4");
  endpoint.pass_all();
  ASSERT_TRUE(becomes(ids[0], "waiting")) << describe();
}

TEST_F(TimelockFaults, of_two_nodes_one_scans_and_the_other_takes_over_when_it_dies) {
  start(0, 2, {.rewritten = true});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  auto ids = schedule(timelock, 3);
  for (const auto& id : ids) ASSERT_TRUE(becomes(id, "waiting")) << describe();
  const auto owner = cluster_->sql("SELECT owner_node FROM timelock_scan");
  const std::size_t scanning = owner.starts_with(cluster_->sql("SELECT split_part(min(node_id), '/', 1) FROM "
                                                               "cluster_node"))
                                   ? 0
                                   : 1;
  // It dies while it waits for the logs of a block.
  cluster_->chain_rewriter(scanning).hold("eth_getLogs");
  ids = schedule(timelock, 3, 10);
  cluster_->node(scanning).kill();
  for (const auto& id : ids) ASSERT_TRUE(becomes(id, "waiting")) << describe();
  EXPECT_NE(cluster_->sql("SELECT owner_node FROM timelock_scan"), owner);
  EXPECT_EQ(flows(), "6");
  EXPECT_EQ(announced_once(), "6");
}

// The blocks were mined while no node ran: more than the follower keeps.
TEST_F(TimelockFaults, a_downtime_is_caught_up_without_a_gap) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  auto ids = schedule(timelock, 2);
  for (const auto& id : ids) ASSERT_TRUE(becomes(id, "waiting")) << describe();
  cluster_->node(0).kill();
  ids = schedule(timelock, 2, 10);
  cluster_->mine(400);
  for (const auto& id : schedule(timelock, 2, 20)) ids.push_back(id);
  cluster_->mine(400);
  for (const auto& id : schedule(timelock, 2, 30)) ids.push_back(id);
  cluster_->node(0).start();
  for (const auto& id : ids) ASSERT_TRUE(becomes(id, "waiting")) << describe();
  EXPECT_EQ(flows(), "8");
  EXPECT_EQ(announced_once(), "8");
}

// The same transaction in another block: its delay runs from there, and nothing that was announced is taken back.
TEST_F(TimelockFaults, a_reorg_that_moves_a_schedule_to_another_block_moves_its_eta) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  cluster_->mine(3);
  const TimelockCall call{recipient(1)};
  const auto hash = timelock.schedule(call, salt(1), 1000);
  const auto id = OpenZeppelinTimelock::id(call, salt(1));
  ASSERT_TRUE(becomes(id, "waiting")) << describe();
  const auto raw = cluster_->rpc("eth_getTransactionByHash", {hash});
  const auto old_block = cluster_->sql("SELECT queue_block FROM timelock_transaction_flows");
  cluster_->mine(1);
  ASSERT_TRUE(scanned()) << describe();
  // Three blocks are replaced; the transaction comes in the second of the new ones.
  json::array placed;
  placed.push_back(json::object{{"from", signer(0)}, {"to", timelock.address()}, {"data", raw.at("input")}});
  placed.push_back(2);
  json::array all;
  all.push_back(std::move(placed));
  cluster_->rpc("anvil_reorg", {3, all});
  cluster_->mine(1);
  ASSERT_TRUE(eventually([&] {
    const auto block = cluster_->sql("SELECT queue_block FROM timelock_transaction_flows WHERE NOT removed");
    return block != old_block && !block.empty();
  })) << describe();
  ASSERT_TRUE(scanned()) << describe();
  EXPECT_EQ(announced(id), "waiting");
  EXPECT_EQ(cluster_->sql("SELECT f.eta = extract(epoch FROM t.block_timestamp) + 1000 FROM timelock_transaction_flows "
                          "AS f JOIN openzeppelin_timelock_transactions AS t ON t.event_id = f.flow_id WHERE NOT "
                          "t.orphaned AND t.event_type = 'CallScheduled'"),
            "t");
  EXPECT_EQ(cluster_->sql("SELECT count(*) FILTER (WHERE orphaned) || ' ' || count(*) FILTER (WHERE NOT orphaned) FROM "
                          "openzeppelin_timelock_transactions WHERE event_type = 'CallScheduled'"),
            "1 1");
}

TEST_F(TimelockFaults, a_reorg_under_an_execution_takes_only_that_back) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const TimelockCall call{recipient(1)};
  timelock.schedule(call, salt(1), 1000);
  const auto id = OpenZeppelinTimelock::id(call, salt(1));
  chain_->pass(1000);
  ASSERT_TRUE(becomes(id, "waiting>ready")) << describe();
  timelock.execute(call, salt(1));
  ASSERT_TRUE(becomes(id, "waiting>ready>executed")) << describe();
  cluster_->reorg(1);
  cluster_->mine(1);
  ASSERT_TRUE(becomes(id, "waiting>ready>executed>-executed")) << describe();
  EXPECT_EQ(status(id), "ready");
  timelock.execute(call, salt(1));
  ASSERT_TRUE(becomes(id, "waiting>ready>executed>-executed>executed")) << describe();
}

TEST_F(TimelockFaults, a_long_history_is_read_while_new_events_arrive) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  std::vector<TimelockCall> calls(100, TimelockCall{recipient(1)});
  constexpr int kBatches = 50;
  for (int i = 0; i < kBatches; ++i) {
    timelock.schedule_batch(calls, salt(1'000 + static_cast<std::uint64_t>(i)), 100'000);
    cluster_->mine(20);
  }
  import(timelock.address());
  const auto ids = schedule(timelock, 10);
  ASSERT_TRUE(eventually([&] { return announced_once() == std::to_string(kBatches + 10); })) << describe();
  EXPECT_EQ(flows(), std::to_string(kBatches + 10));
  EXPECT_EQ(cluster_->sql("SELECT count(*) FROM openzeppelin_timelock_transactions WHERE event_type = 'CallScheduled'"),
            std::to_string(kBatches * 100 + 10));
  EXPECT_EQ(cluster_->sql("SELECT count(DISTINCT (block_number, log_index)) FROM openzeppelin_timelock_transactions "
                          "WHERE event_type = 'CallScheduled'"),
            std::to_string(kBatches * 100 + 10));
}

// It answers every call with a zero, and a transaction without data makes it emit CallScheduled without arguments.
TEST_F(TimelockFaults, a_contract_that_emits_nonsense_is_halted_and_the_others_go_on) {
  start();
  const OpenZeppelinTimelock honest(*chain_, signer(0), 100);
  const auto hostile = recipient(9);
  const std::string topic = "4cf4410cc57040e44862ef0f45f3dd5a5e02db8eb8add648d4b0e236f1d07dca";
  cluster_->rpc("anvil_setCode", {hostile, "0x36602b577f" + topic + "60006000a1005b60206000f3"});
  cluster_->mine(1);
  import(honest.address());
  import(hostile, {{"standard", "openzeppelin"}});
  chain_->send(signer(0), hostile, "0x");
  const auto ids = schedule(honest, 2);
  for (const auto& id : ids) ASSERT_TRUE(becomes(id, "waiting")) << describe();
  const auto shown = json::parse(cluster_->get(0, "/api/v1/timelocks/31337/" + hostile).body);
  EXPECT_TRUE(shown.at("haltedAtBlock").is_int64()) << shown;
  EXPECT_NE(shown.at("history").at("error").as_string().find("bad_log"), std::string::npos) << shown;
  ASSERT_TRUE(scanned()) << describe();
}

}  // namespace
}  // namespace fencepost::test
