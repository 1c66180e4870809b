// The clients that people use, unchanged, against POST /rpc/{chainId}/{key} of a real node.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "runtime/read_file.hpp"
#include "tests/support/cast.hpp"
#include "tests/support/npm_client.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

std::string rpc_url(TxCluster& cluster) {
  return cluster.node(0).url("/rpc/31337/" + cluster.key());
}

TEST(json_rpc_clients, ethers_deploys_calls_and_schedules) {
  TxCluster cluster;
  const auto report = run_client("ethers.mjs", {rpc_url(cluster)});
  ASSERT_FALSE(report.as_object().empty()) << cluster.describe();
  EXPECT_EQ(report.at("delay"), "60");
  EXPECT_EQ(report.at("status"), 1);
  EXPECT_EQ(report.at("isOperation"), true);
  EXPECT_EQ(report.at("revert"), "TimelockController: operation already scheduled");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM managed_tx"), "2");
}

TEST(json_rpc_clients, viem_deploys_calls_and_queues) {
  TxCluster cluster;
  const auto report = run_client("viem.mjs", {rpc_url(cluster), "31337"});
  ASSERT_FALSE(report.as_object().empty()) << cluster.describe();
  EXPECT_EQ(report.at("delay"), "172800");
  EXPECT_EQ(report.at("status"), "success");
  EXPECT_EQ(report.at("queued"), true);
  EXPECT_EQ(report.at("revert"), "Timelock::queueTransaction: Estimated execution block must satisfy delay.");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM managed_tx"), "2");
}

TEST(json_rpc_clients, cast_deploys_calls_and_schedules) {
  TxCluster cluster;
  const auto path = source_dir() / "tests/clients/node_modules/@openzeppelin/contracts/build/contracts";
  const auto artifact = json::parse(read_file(path / "TimelockController.json"));
  const auto send = [&](std::vector<std::string> rest) {
    std::vector<std::string> argv{"send", "--unlocked", "--json", "--from", signer(0), "--rpc-url", rpc_url(cluster)};
    argv.insert(argv.end(), rest.begin(), rest.end());
    return json::parse(cast(std::move(argv)));
  };
  const auto read = [&](const std::string& to, std::vector<std::string> rest) {
    std::vector<std::string> argv{"call", "--rpc-url", rpc_url(cluster), to};
    argv.insert(argv.end(), rest.begin(), rest.end());
    return cast(std::move(argv));
  };
  const auto list = "[" + signer(0) + "]";
  const auto deployed = send({"--create", std::string(artifact.at("bytecode").as_string()),
                              "constructor(uint256,address[],address[],address)", "60", list, list, signer(0)});
  const std::string timelock(deployed.at("contractAddress").as_string());
  EXPECT_TRUE(read(timelock, {"getMinDelay()(uint256)"}).starts_with("60"));

  const std::string zero = "0x" + std::string(64, '0');
  const auto scheduled = send(
      {timelock, "schedule(address,uint256,bytes,bytes32,bytes32,uint256)", signer(0), "0", "0x", zero, zero, "60"});
  EXPECT_EQ(scheduled.at("status"), "0x1");
  const auto id = read(
      timelock, {"hashOperation(address,uint256,bytes,bytes32,bytes32)(bytes32)", signer(0), "0", "0x", zero, zero});
  EXPECT_EQ(read(timelock, {"isOperation(bytes32)(bool)", id}), "true");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM managed_tx"), "2");
}

// docs/json-rpc.md shows what becomes of the same script without Fencepost.
TEST(json_rpc_clients, two_hundred_parallel_sends_of_one_ethers_signer_all_succeed) {
  TxCluster cluster({.settings = {.max_in_flight = 0}});
  const auto report = run_client("parallel.mjs", {rpc_url(cluster), "200"});
  ASSERT_FALSE(report.as_object().empty()) << cluster.describe();
  EXPECT_EQ(report.at("accepted"), 200) << json::serialize(report) << cluster.describe();
  EXPECT_EQ(report.at("hashes"), 200);
  EXPECT_EQ(report.at("nonces"), 200);
  EXPECT_EQ(report.at("mined"), 200);
  EXPECT_EQ(report.at("errors"), json::object());
  EXPECT_EQ(cluster.balance("0x000000000000000000000000000000000000dead"), 200 * 201 / 2);
}

}  // namespace
}  // namespace fencepost::test
