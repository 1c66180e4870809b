// For tests of timelocks as a whole: nodes, a chain that mines when it is told to, and what was announced.
#pragma once

#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/timelocks.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {

class Timelocks : public ::testing::Test {
 protected:
  // Anvil mines when it is told to, so that a test decides what is in which block.
  void start(std::int64_t confirmations = 0, std::size_t nodes = 1, TxClusterOptions options = {}) {
    options.nodes = nodes;
    options.settings.more +=
        fmt::format("scanner:\n  confirmations: {}\n  flow_refresh_batch_size: {}\n", confirmations, refresh_batch_);
    options.anvil = {"--no-mining"};
    cluster_.emplace(std::move(options));
    chain_.emplace(*cluster_);
    chain_->cluster().mine(1);
  }
  boost::json::value import(const std::string& address, boost::json::object more = {}) {
    more["chainId"] = 31337;
    more["address"] = address;
    const auto answer = cluster_->post(0, "/api/v1/timelocks", more);
    if (answer.status != 201) throw Exception(internal("import", answer.body));
    return boost::json::parse(answer.body);
  }
  // "waiting>ready>executed": what was announced about a flow, with "-" before what was taken back.
  std::string announced(const std::string& flow_id) const {
    return cluster_->sql(fmt::format(
        "SELECT coalesce(string_agg(CASE WHEN (data->>'retracted')::bool THEN '-' ELSE '' END || (data->>'statusTo'), "
        "'>' ORDER BY seq), '') FROM outbox WHERE type = 'FlowStatusChanged' AND data->>'flowId' = '{}'",
        flow_id));
  }
  bool becomes(const std::string& flow_id, const std::string& wanted) const {
    return eventually([&] { return announced(flow_id) == wanted; });
  }
  std::string status(const std::string& flow_id) const {
    return cluster_->sql(
        fmt::format("SELECT string_agg(status || CASE WHEN removed THEN ' removed' ELSE '' END, ',' "
                    "ORDER BY generation) FROM timelock_transaction_flows WHERE flow_id = '{}'",
                    flow_id));
  }
  bool scanned() const {
    return eventually(
        [&] { return cluster_->sql("SELECT block_number FROM timelock_scan") == std::to_string(cluster_->head()); });
  }
  std::string describe() const {
    return cluster_->sql(
               "SELECT coalesce(string_agg(concat_ws(' ', contract_address, flow_id, generation, status, confirmed, "
               "told::text, tell_block, due_at, expired_at), E'\\n'), '') FROM timelock_transaction_flows") +
           "\nscan: " +
           cluster_->sql("SELECT concat_ws(' ', block_number, block_timestamp, last_error) FROM timelock_scan") + "\n" +
           cluster_->node(0).output();
  }

  std::size_t refresh_batch_ = 200;
  mutable std::optional<TxCluster> cluster_;
  std::optional<TimelockChain> chain_;
};

}  // namespace fencepost::test
