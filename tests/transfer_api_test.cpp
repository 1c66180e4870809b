// Transfers through a real node: its HTTP server, its keys, its coordinator.
#include <fstream>

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "tests/support/event_schema.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/postgres.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

class TransferApi : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(config_) << "database:\n  dsn: \"" << db_.dsn() << "\"\nhttp:\n  port: " << port_ << "\n"
                           << "transfer: {audit_interval: 1s}\n";
    ASSERT_EQ(fencepost({"migrate", "--config", config_.string()}).status.code, 0);
    serve();
  }

  void TearDown() override { EXPECT_EQ(problems_of_log(db_.dsn()), std::vector<std::string>{}); }

  void serve() {
    node_.emplace(std::vector<std::string>{"serve", "--config", config_.string()}, dir_ / "output");
    ASSERT_TRUE(eventually([&] { return ask({.url = url("/readyz")}).status == 200; }, 30s)) << node_->output();
  }

  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }
  std::string key(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"apikey", "create", "--config", config_.string(), "--json", "--label", "test"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto made = fencepost(all);
    EXPECT_EQ(made.status.code, 0) << made.err;
    return std::string(boost::json::parse(made.out).at("key").as_string());
  }
  Answer post(const std::string& path, const std::string& key, const std::string& body) {
    return ask({"POST", url("/api/v1" + path), key, body});
  }
  Answer get(const std::string& path, const std::string& key) {
    return ask({.url = url("/api/v1" + path), .key = key});
  }

  TestDatabase db_;
  TempDir dir_{"transfer-api"};
  std::filesystem::path config_ = dir_ / "fencepost.yaml";
  std::uint16_t port_ = free_port();
  std::optional<RunningFencepost> node_;
};

constexpr auto kTransfer = R"({"guildId": "7", "initiatorId": "1", "targetId": "2", "amount": "40", "mode": "pool"})";
constexpr auto kMint = R"({"amount": "100", "reason": "prize"})";

TEST_F(TransferApi, a_pool_transfer_waits_for_money_and_completes_once_the_payer_has_it) {
  const auto admin = key({"--scope", "admin"});
  const auto accepted = post("/transfers", admin, kTransfer);
  ASSERT_EQ(accepted.status, 202U) << accepted.body;
  EXPECT_EQ(accepted.json().at("status").as_string(), "checking");
  ASSERT_EQ(post("/guilds/7/accounts/1/mint", admin, kMint).status, 201U);
  const auto path = "/transfers/" + std::string(accepted.json().at("transferId").as_string());
  EXPECT_TRUE(eventually([&] { return get(path, admin).json().at("status") == "completed"; })) << get(path, admin).body;
  EXPECT_EQ(get("/guilds/7/accounts/2", admin).json().at("balance").as_string(), "40");
  const auto csv = get("/guilds/7/accounts/1/statement?format=csv", admin).body;
  EXPECT_NE(csv.find(",transfer,-40,60,2,"), std::string::npos) << csv;
  EXPECT_EQ(get("/transfers/audit", admin).json().at("ok"), true);
}

TEST_F(TransferApi, a_key_does_what_its_scopes_and_guilds_allow) {
  const auto writer = key({"--scope", "transfer:write", "--guild", "7"});
  EXPECT_EQ(post("/transfers", writer, kTransfer).status, 202U);
  EXPECT_EQ(post("/guilds/7/accounts/1/mint", writer, kMint).code(), "insufficient_scope");
  EXPECT_EQ(get("/transfers?guildId=7", writer).code(), "insufficient_scope");
  const auto other_guild = key({"--scope", "transfer:write", "--scope", "transfer:read", "--guild", "8"});
  EXPECT_EQ(post("/transfers", other_guild, kTransfer).code(), "guild_not_allowed");
  EXPECT_EQ(get("/transfers?guildId=7", other_guild).code(), "guild_not_allowed");
  EXPECT_EQ(get("/transfers?guildId=8", other_guild).status, 200U);
}

TEST_F(TransferApi, metrics_report_the_pool_and_the_audit) {
  const auto admin = key({"--scope", "admin"});
  EXPECT_EQ(post("/transfers", admin, kTransfer).status, 202U);
  const auto becomes = [&](const std::string& name, double value) {
    return eventually([&] { return metric_of(url(""), name) == value; }, 60s);
  };
  EXPECT_TRUE(becomes("transfer_pool_waiting", 1));
  EXPECT_TRUE(eventually([&] { return metric_of(url(""), "transfer_pool_oldest_waiting_seconds") > 0; }, 60s));
  ASSERT_EQ(post("/guilds/7/accounts/1/mint", admin, kMint).status, 201U);
  EXPECT_TRUE(becomes("transfer_pool_waiting", 0));
  // These series exist even while their value is 0.
  const auto metrics = ask({.url = url("/metrics")}).body;
  for (const std::string name :
       {"\nfencepost_pg_notification_queue_usage_ratio ", "transfer_pool_oldest_approved_seconds 0",
        "transfer_audit_wrong{check=\"balances_are_their_entries\"} 0"}) {
    EXPECT_NE(metrics.find(name), std::string::npos) << name;
  }
  db_.exec("UPDATE economy.accounts SET balance = balance + 5 WHERE guild_id = 7 AND member_id = 1");
  EXPECT_TRUE(becomes("transfer_audit_wrong{check=\"balances_are_their_entries\"}", 1));
}

// The environment variable TRANSFER_EVENT_POOL_ENABLED makes the pool the default mode.
class TransferApiByPool : public TransferApi {
 protected:
  void SetUp() override {
    ::setenv("TRANSFER_EVENT_POOL_ENABLED", "true", 1);
    TransferApi::SetUp();
    ::unsetenv("TRANSFER_EVENT_POOL_ENABLED");
  }
};

constexpr auto kWithoutMode = R"({"guildId": "7", "initiatorId": "1", "targetId": "2", "amount": "40"})";

TEST_F(TransferApi, without_a_mode_a_transfer_is_synchronous) {
  const auto admin = key({"--scope", "admin"});
  EXPECT_EQ(post("/transfers", admin, kWithoutMode).code(), "insufficient_balance");
}

TEST_F(TransferApiByPool, without_a_mode_a_transfer_enters_the_pool_if_the_pool_is_the_default) {
  const auto admin = key({"--scope", "admin"});
  const auto accepted = post("/transfers", admin, kWithoutMode);
  ASSERT_EQ(accepted.status, 202U) << accepted.body;
  EXPECT_EQ(accepted.json().at("status").as_string(), "checking");
  const auto at_once = std::string(kWithoutMode).replace(0, 1, R"({"mode": "sync", )");
  EXPECT_EQ(post("/transfers", admin, at_once).code(), "insufficient_balance");
}

// The node is killed when a transfer is approved and not completed, and when it has just been completed.
class TransferApiKilled : public TransferApi, public testing::WithParamInterface<const char*> {};

TEST_P(TransferApiKilled, an_approved_transfer_is_completed_once_after_a_restart) {
  const auto admin = key({"--scope", "admin"});
  ASSERT_EQ(post("/guilds/7/accounts/1/mint", admin, kMint).status, 201U);
  node_->kill();
  ::setenv("FENCEPOST_TEST_KILL_AT", GetParam(), 1);
  serve();
  ::unsetenv("FENCEPOST_TEST_KILL_AT");
  const bool at_once = GetParam() == std::string_view("transfer.approved");
  // No node can complete the transfer before the kill.
  if (at_once) db_.exec("ALTER FUNCTION economy.fn_process_due RENAME TO fn_process_later");
  const auto lost = post("/transfers", admin, kTransfer);
  EXPECT_TRUE(lost.status == 0 || lost.status == 202) << lost.body;
  ASSERT_TRUE(eventually([&] { return !node_->running(); })) << "the node did not die at the kill point";
  EXPECT_EQ(db_.exec("SELECT status FROM economy.pending_transfers"), at_once ? "approved" : "completed");
  if (at_once) db_.exec("ALTER FUNCTION economy.fn_process_later RENAME TO fn_process_due");
  serve();
  EXPECT_TRUE(eventually([&] { return db_.exec("SELECT status FROM economy.pending_transfers") == "completed"; }));
  EXPECT_EQ(db_.exec("SELECT count(*) FROM economy.transactions WHERE kind = 'transfer'"), "1");
  EXPECT_EQ(get("/transfers/audit", admin).json().at("ok"), true);
}

INSTANTIATE_TEST_SUITE_P(at, TransferApiKilled, testing::Values("transfer.approved", "transfer.completed"),
                         [](const auto& info) { return std::string(info.param).substr(9); });

}  // namespace
}  // namespace fencepost::test
