// Compares docs/metrics.md with the metrics of a running node, in both directions.
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "outbox/webhook/webhook_test_support.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/mailbox.hpp"
#include "tests/support/metric_docs.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

// The series of a histogram count as the histogram, without its label `le`.
MetricsByName shown(const std::string& exposition) {
  const std::regex type_line("^# TYPE ([A-Za-z0-9_:]+) ([a-z]+)$");
  const std::regex label(R"rx([{,]([A-Za-z0-9_]+)=")rx");
  MetricsByName metrics;
  std::string family;
  std::istringstream lines(exposition);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, type_line)) {
      family = match[1];
      metrics[family].type = match[2];
    } else if (!line.starts_with("#")) {
      metrics.at(family).labels.merge(all_matches(line, label));
    }
  }
  for (auto& [name, metric] : metrics) {
    if (metric.type == "histogram") metric.labels.erase("le");
  }
  return metrics;
}

std::string text_of(const MetricsByName& metrics) {
  std::string text;
  for (const auto& [name, metric] : metrics) {
    text += name + " " + metric.type;
    for (const auto& label : metric.labels) text += " " + label;
    text += "\n";
  }
  return text;
}

// The metrics of `a` that `b` lacks, or has with another type or other labels.
std::string difference(const MetricsByName& a, const MetricsByName& b) {
  MetricsByName out;
  for (const auto& [name, metric] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second != metric) out.emplace(name, metric);
  }
  return text_of(out);
}

class NodeMetrics : public testing::Test {
 protected:
  MetricsByName node_metrics() { return shown(ask({.url = cluster_.node(0).url("/metrics")}).body); }

  outbox::testing::HttpReceiver receiver_;
  NatsServer nats_;
  Mailbox mail_;
  TxCluster cluster_{
      {.settings = {.more = "nats: {url: " + nats_.url() + "}\nemail: {transport: file, from: a@example.org, " +
                            "directory: " + mail_.directory().string() + "}\n" +
                            "webhooks: {allow_private: true, allow_http: true}"},
       .anvil = {"--no-mining"}}};
};

TEST_F(NodeMetrics, of_a_node_under_work_equal_the_documentation) {
  const auto docs = documented_metrics();
  ASSERT_GT(docs.size(), 50U);
  // Lag is reported for each consumer, and requests to receivers once there is one.
  const auto key =
      fencepost({"apikey", "create", "--dsn", cluster_.dsn(), "--json", "--label", "w", "--scope", "admin"});
  const auto webhook = ask({.method = "POST",
                            .url = cluster_.node(0).url("/api/v1/webhooks"),
                            .key = std::string(boost::json::parse(key.out).at("key").as_string()),
                            .body = boost::json::serialize(boost::json::object{{"url", receiver_.url()}})});
  ASSERT_EQ(webhook.status, 201U) << webhook.body;
  cluster_.create(0, transfer(signer(0), "first", 1));
  // A signer's gauge appears once the counting worker, which runs every ten seconds, has seen its open work.
  ASSERT_TRUE(eventually([&] { return node_metrics().contains("fencepost_tx_oldest_open_seconds"); }, 60s));
  cluster_.mine(3);
  ASSERT_TRUE(cluster_.all_confirmed()) << cluster_.describe();
  // Separate workers set the audit's metrics and some gauges, a moment after the start.
  if (eventually([&] { return node_metrics() == docs; }, 60s)) return;
  const auto node = node_metrics();
  ADD_FAILURE() << "in docs/metrics.md, but missing or different at the node:\n"
                << difference(docs, node) << "at the node, but missing or different in docs/metrics.md:\n"
                << difference(node, docs);
}

// The increase of a counter that appears with its first increment is 0: an alert would not fire.
TEST_F(NodeMetrics, used_by_alerts_exist_from_the_start) {
  const auto at_start = node_metrics();
  auto asked = metrics_of_alerts();
  ASSERT_GE(asked.size(), 30U);
  // These come with their subject: a route that is asked, a signer that has open work.
  for (const auto* name : {"fencepost_http_requests_total", "fencepost_tx_oldest_open_seconds"}) {
    EXPECT_EQ(asked.erase(name), 1U) << name;
  }
  // No alert of ours asks for these, but their labels are known, and an operator's may.
  for (const auto* name : {"fencepost_tx_create_total", "fencepost_tx_operator_actions_total",
                           "fencepost_receipt_check_total", "fencepost_transfer_requests_total"}) {
    asked.insert(name);
  }
  for (const auto& name : asked) {
    if (name.ends_with("_total")) EXPECT_TRUE(at_start.contains(name)) << name;
  }
  // A worker sets some gauges, a moment after the start.
  const auto missing = [&] {
    const auto now = node_metrics();
    std::string names;
    for (const auto& name : asked) names += now.contains(name) ? "" : name + " ";
    return names;
  };
  EXPECT_TRUE(eventually([&] { return missing().empty(); }, 60s)) << missing();
}

TEST_F(NodeMetrics, have_the_prefix_unless_they_are_about_the_process) {
  for (const auto& [name, metric] : node_metrics()) {
    EXPECT_TRUE(name.starts_with("fencepost_") || name.starts_with("process_")) << name;
    EXPECT_EQ(name.ends_with("_total"), metric.type == "counter") << name;
  }
}

// A gauge of the whole node, or of chains that are not configured, has no chain.
TEST(metrics, of_transactions_and_leases_have_the_label_chain) {
  const std::regex ours("fencepost_(tx|lease|receipt|confirmations|signer|chain|rpc|timelock)_.*");
  int counted = 0;
  for (const auto& [name, metric] : documented_metrics()) {
    if (!std::regex_match(name, ours) || name == "fencepost_lease_held" || name == "fencepost_tx_unled") continue;
    ++counted;
    EXPECT_TRUE(metric.labels.contains("chain")) << name;
  }
  EXPECT_GT(counted, 35);
}

}  // namespace
}  // namespace fencepost::test
