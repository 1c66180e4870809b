// `fencepost timelock verify` and the worker behind it: real contracts on a real chain, and flows that were corrupted
// by SQL.
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/timelocks.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAreArray;

constexpr std::int64_t kDay = CompoundTimelock::kDay;

class TimelockVerify : public ::testing::Test {
 protected:
  // Anvil mines when it is told to: nothing moves while a test compares.
  void start(TxClusterOptions options = {}) {
    options.settings.more += "scanner:\n  confirmations: 0\n" + scanner_;
    options.anvil = {"--no-mining"};
    cluster_.emplace(std::move(options));
    chain_.emplace(*cluster_);
    cluster_->mine(1);
  }
  void import(const std::string& address) {
    const auto answer = cluster_->post(0, "/api/v1/timelocks", {{"chainId", 31337}, {"address", address}});
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  bool told(const std::string& flow_id, const std::string& path) const {
    return cluster_->sql_becomes(
        fmt::format("SELECT string_agg(array_to_string(told, '>'), ',' ORDER BY generation) FROM "
                    "timelock_transaction_flows WHERE flow_id = '{}'",
                    flow_id),
        path, kPatience);
  }

  // A flow of each kind: compound waiting, executed and expired, openzeppelin waiting, executed, and cancelled once and
  // queued again.
  void make_flows() {
    compound_.emplace(*chain_, signer(0));
    openzeppelin_.emplace(*chain_, signer(0), 100);
    import(compound_->address());
    import(openzeppelin_->address());
    const auto eta = chain_->now() + 3 * kDay;
    const auto late = chain_->now() + 100 * kDay;
    for (const auto n : {1, 2}) {
      compound_->queue({recipient(static_cast<std::uint32_t>(n))}, "", eta);
    }
    compound_->queue({recipient(3)}, "", late);
    openzeppelin_->schedule({recipient(1)}, salt(1), 100 * kDay);
    openzeppelin_->schedule({recipient(1)}, salt(2), 100);
    openzeppelin_->schedule({recipient(1)}, salt(3), 100 * kDay);
    openzeppelin_->cancel(oz_id(3));
    openzeppelin_->schedule({recipient(1)}, salt(3), 100 * kDay);
    executed_ = CompoundTimelock::id({recipient(1)}, "", eta);
    expired_ = CompoundTimelock::id({recipient(2)}, "", eta);
    waiting_ = CompoundTimelock::id({recipient(3)}, "", late);
    chain_->set_time(eta);
    for (const auto& id : {executed_, expired_, oz_id(2)}) ASSERT_TRUE(told(id, "waiting>ready"));
    compound_->execute({recipient(1)}, "", eta);
    openzeppelin_->execute({recipient(1)}, salt(2));
    chain_->set_time(eta + CompoundTimelock::kGrace + 1);
    ASSERT_TRUE(told(expired_, "waiting>ready>expired"));
    ASSERT_TRUE(told(executed_, "waiting>ready>executed"));
    ASSERT_TRUE(told(waiting_, "waiting"));
    ASSERT_TRUE(told(oz_id(1), "waiting"));
    ASSERT_TRUE(told(oz_id(2), "waiting>ready>executed"));
    ASSERT_TRUE(told(oz_id(3), "waiting>cancelled,waiting"));
    ASSERT_TRUE(cluster_->sql_becomes("SELECT block_number FROM timelock_scan", std::to_string(cluster_->head())));
  }
  static std::string oz_id(std::uint64_t number) { return OpenZeppelinTimelock::id({recipient(1)}, salt(number)); }

  Finished run(std::vector<std::string> arguments) {
    std::vector<std::string> all{"timelock", "verify"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return fencepost(all, {"FENCEPOST_URL=" + cluster_->node(0).url(""), "FENCEPOST_API_KEY=" + cluster_->key()});
  }
  json::value verify(int exit_code) {
    const auto done = run({"--json"});
    EXPECT_EQ(done.status.code, exit_code) << done.out << done.err;
    return json::parse(done.out);
  }
  // What differs, as "flow what", after `corrupt`, which is then undone.
  std::vector<std::string> found_after(const std::string& corrupt) {
    cluster_->sql(corrupt);
    const auto answer = verify(3);
    restore();
    std::vector<std::string> out;
    for (const auto& one : answer.at("differences").as_array()) {
      out.push_back(std::string(one.at("flowId").as_string()) + " " + std::string(one.at("what").as_string()));
    }
    return out;
  }
  void back_up() {
    for (const auto* table : kTables) cluster_->sql(fmt::format("CREATE TABLE good_{0} AS TABLE {0}", table));
  }
  void restore() {
    for (const auto* table : kTables) {
      cluster_->sql(fmt::format("BEGIN; DELETE FROM {0}; INSERT INTO {0} SELECT * FROM good_{0}; COMMIT", table));
    }
  }
  static constexpr const char* kTables[] = {"timelock_transaction_flows", "compound_timelock_transactions",
                                            "openzeppelin_timelock_transactions"};

  std::string scanner_ = {};  // YAML
  std::optional<TxCluster> cluster_;
  std::optional<TimelockChain> chain_;
  std::optional<CompoundTimelock> compound_;
  std::optional<OpenZeppelinTimelock> openzeppelin_;
  std::string executed_, expired_, waiting_;
};

TEST_F(TimelockVerify, nothing_differs_after_a_normal_run_and_each_corruption_is_named) {
  scanner_ = "  verify_interval: 0s\n";
  start();
  make_flows();
  const auto good = verify(0);
  EXPECT_EQ(good.at("flows"), 6) << json::serialize(good);
  EXPECT_EQ(good.at("contracts"), 2);
  EXPECT_EQ(good.at("comparedWithContract"), 6);
  EXPECT_THAT(run({}).out, HasSubstr("6 flows of 2 contracts checked, 6 against their contract: 0 differences\n"));
  EXPECT_EQ(json::parse(run({"--json", "--contract", compound_->address()}).out).at("flows"), 3);
  EXPECT_EQ(json::parse(run({"--json", "--chain", "1"}).out).at("flows"), 0);

  back_up();
  const auto flows = [](const std::string& set, const std::string& id, const std::string& more = "") {
    return fmt::format("UPDATE timelock_transaction_flows SET {} WHERE flow_id = '{}' {}", set, id, more);
  };
  const auto whats = [](const std::string& id, const std::vector<std::string>& names) {
    std::vector<std::string> out;
    out.reserve(names.size());
    for (const auto& name : names) out.push_back(fmt::format("{} {}", id, name));
    return out;
  };
  const auto extra = "0x" + std::string(64, '7');
  const struct {
    std::string sql;
    std::string flow;
    std::vector<std::string> differences;
  } cases[] = {
      {flows("status = 'ready'", oz_id(1)), oz_id(1), {"status"}},
      {flows("status = 'cancelled', cancel_tx_hash = '0x1'", waiting_), waiting_, {"status", "endTxHash", "contract"}},
      {flows("status = 'waiting', execute_tx_hash = NULL", executed_), executed_, {"status", "endTxHash", "contract"}},
      {flows("eta = eta + 1", oz_id(1)), oz_id(1), {"eta", "contract"}},
      {flows("due_at = due_at + interval '1 s'", waiting_), waiting_, {"dueAt"}},
      {flows("expired_at = NULL", waiting_), waiting_, {"expiredAt"}},
      {flows("told = '{}', confirmed = false", waiting_), waiting_, {"told", "confirmed"}},
      {flows("queue_tx_hash = '0x1'", waiting_), waiting_, {"queueTxHash"}},
      {flows("generation = 3", oz_id(3), "AND generation = 2"), oz_id(3), {"missing", "extra"}},
      {fmt::format("DELETE FROM timelock_transaction_flows WHERE flow_id = '{}'", oz_id(2)), oz_id(2), {"missing"}},
      {fmt::format("CREATE TEMP TABLE one AS SELECT * FROM timelock_transaction_flows WHERE flow_id = '{}'; "
                   "UPDATE one SET flow_id = '{}'; INSERT INTO timelock_transaction_flows SELECT * FROM one",
                   oz_id(1), extra),
       extra,
       {"extra", "contract"}},
      {fmt::format("DELETE FROM compound_timelock_transactions WHERE event_tx_hash = '{}'", waiting_),
       waiting_,
       {"extra"}},
      {fmt::format("DELETE FROM compound_timelock_transactions WHERE event_tx_hash = '{}' AND event_type = "
                   "'ExecuteTransaction'",
                   executed_),
       executed_,
       {"status", "endTxHash", "endBlock", "endedAt", "told"}},
      {fmt::format("UPDATE openzeppelin_timelock_transactions SET orphaned = true WHERE event_id = '{}'", oz_id(1)),
       oz_id(1),
       {"extra"}},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(found_after(c.sql), UnorderedElementsAreArray(whats(c.flow, c.differences))) << c.sql;
  }
  verify(0);
}

TEST_F(TimelockVerify, an_event_that_was_never_stored_is_found_by_asking_the_contract) {
  scanner_ = "  verify_interval: 0s\n";
  start();
  make_flows();
  // As if the scanner had missed the execution: events and flow agree with each other.
  cluster_->sql(fmt::format(
      "DELETE FROM openzeppelin_timelock_transactions WHERE event_id = '{0}' AND event_type = 'CallExecuted'; "
      "UPDATE timelock_transaction_flows SET status = 'ready', told = '{{waiting,ready}}', execute_tx_hash = NULL, "
      "executed_at = NULL, end_block = NULL WHERE flow_id = '{0}'",
      oz_id(2)));
  const auto found = run({});
  EXPECT_EQ(found.status.code, 3) << found.err;
  EXPECT_THAT(found.out, HasSubstr("  flow      " + oz_id(2) + " generation 1\n"));
  EXPECT_THAT(found.out, HasSubstr("  expected  the contract has executed it\n"));
  EXPECT_THAT(found.out, HasSubstr("6 flows of 2 contracts checked, 6 against their contract: 1 differences\n"));
}

TEST_F(TimelockVerify, an_endpoint_without_old_state_is_reported_and_raises_no_alarm) {
  scanner_ = "  verify_interval: 0s\n";
  TxClusterOptions options;
  options.rewritten = true;
  start(std::move(options));
  make_flows();
  cluster_->chain_rewriter(0).answer_error("eth_call", -32000, "missing trie node");
  const auto done = run({});
  EXPECT_EQ(done.status.code, 6) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("not checked: 3 flows of " + compound_->address() + " on chain 31337: "));
  EXPECT_THAT(done.out, HasSubstr("6 flows of 2 contracts checked, 0 against their contract: 0 differences\n"));
  cluster_->chain_rewriter(0).pass_all();
  verify(0);
  // Flows of a halted contract are not as of the scanned block.
  cluster_->sql(
      fmt::format("UPDATE timelock SET halted_block = 3 WHERE contract_address = '{}'", compound_->address()));
  EXPECT_EQ(verify(6).at("notChecked").at(0).at("reason"), "the scan of the contract was halted at block 3");
}

// As nodes do that are just adding a block: asked for the state of one block, they answer with that of the next.
TEST_F(TimelockVerify, an_answer_from_another_state_is_no_difference_unless_it_is_repeated) {
  scanner_ = "  verify_interval: 0s\n";
  TxClusterOptions options;
  options.rewritten = true;
  start(std::move(options));
  make_flows();
  auto& endpoint = cluster_->chain_rewriter(0);
  const auto lie = [](json::object reply) {
    reply["result"] = "0x" + std::string(63, '0') + "7";
    return reply;
  };
  std::mutex mutex;
  std::set<std::string> asked;
  endpoint.change("eth_call", [&](const json::object& call, json::object reply) {
    const std::lock_guard lock(mutex);
    return asked.insert(json::serialize(call.at("params"))).second ? lie(std::move(reply)) : reply;
  });
  verify(0);
  EXPECT_EQ(asked.size(), 6U);
  endpoint.change("eth_call", [&](const json::object&, json::object reply) { return lie(std::move(reply)); });
  const auto differences = verify(3).at("differences").as_array();
  EXPECT_EQ(differences.size(), 4U) << json::serialize(differences);  // two compound flows agree with any other than 0
}

TEST_F(TimelockVerify, the_worker_reports_by_metrics_and_log) {
  scanner_ = "  verify_interval: 10ms\n";
  start();
  make_flows();
  const auto metric = [&](const std::string& name) { return cluster_->node(0).metric(name); };
  EXPECT_TRUE(eventually([&] { return metric("timelock_verify_last_success_timestamp_seconds") > 0; }));
  // Not even while the flows came and changed.
  EXPECT_THAT(cluster_->node(0).output(), Not(HasSubstr("a flow differs")));
  EXPECT_EQ(metric("timelock_verify_differences"), 0);
  cluster_->sql(fmt::format("UPDATE timelock_transaction_flows SET eta = eta + 1 WHERE flow_id = '{}'", waiting_));
  EXPECT_TRUE(eventually([&] { return metric("timelock_verify_differences") == 1; })) << cluster_->node(0).output();
  EXPECT_THAT(cluster_->node(0).output(), HasSubstr("a flow differs from its events or its contract"));
  cluster_->sql(fmt::format("UPDATE timelock_transaction_flows SET eta = eta - 1 WHERE flow_id = '{}'", waiting_));
  EXPECT_TRUE(eventually([&] { return metric("timelock_verify_differences") == 0; }));
}

TEST_F(TimelockVerify, a_wrong_request_is_refused) {
  scanner_ = "  verify_interval: 0s\n";
  start();
  EXPECT_EQ(run({"--contract", "0x12"}).status.code, 2);
  EXPECT_EQ(cluster_->post(0, "/api/v1/timelocks/verify", {{"cursor", "x"}}).status, 400);
  EXPECT_EQ(cluster_->post(0, "/api/v1/timelocks/verify", {{"chain", 1}}).status, 400);
  const auto none = run({});
  EXPECT_EQ(none.status.code, 0) << none.err;
  EXPECT_EQ(none.out, "0 flows of 0 contracts checked, 0 against their contract: 0 differences\n");
}

}  // namespace
}  // namespace fencepost::test
