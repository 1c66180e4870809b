// The log of real nodes in a stream of a real nats-server: complete, in order, each event once, whatever is killed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kLog =
    "SELECT coalesce(string_agg(seq || ' ' || subject || ' ' || type, E'\\n' ORDER BY seq), '') FROM outbox";
constexpr auto kOwner = "SELECT split_part(owner_node, '/', 1) FROM event_consumer WHERE consumer = 'nats/default'";

TxClusterOptions nodes_with(const NatsServer& nats, std::size_t nodes, bool start = true) {
  TxClusterOptions options;
  options.nodes = nodes;
  options.start = start;
  options.settings.more = fmt::format("nats: {{url: {}, timeout: 2s}}", nats.url());
  return options;
}

// The events in the stream, in its order, in the form of kLog.
std::string in_stream(const NatsServer& nats) {
  std::vector<std::string> out;
  for (const auto& message : nats.messages("FENCEPOST")) {
    const auto event = boost::json::parse(message.body).as_object();
    const std::string type(event.at("type").as_string());
    const std::string subject(event.at("subject").as_string());
    EXPECT_EQ(event.at("specversion"), "1.0");
    EXPECT_EQ(message.subject, fmt::format("fencepost.{}.{}", subject.substr(0, subject.find('/')), type));
    out.push_back(fmt::format("{} {} {}", std::string(event.at("id").as_string()), subject, type));
  }
  return fmt::format("{}", fmt::join(out, "\n"));
}

bool complete(const TxCluster& cluster, const NatsServer& nats) {
  const auto as_many = [&] {
    return std::to_string(nats.message_count("FENCEPOST")) == cluster.sql("SELECT count(*) FROM outbox");
  };
  return eventually([&] { return as_many() && in_stream(nats) == cluster.sql(kLog); }, 60s);
}

void create_some(TxCluster& cluster, std::size_t node, const std::string& prefix, int count) {
  std::vector<Ask> asks;
  for (int i = 0; i < count; ++i) {
    const auto from = signer(static_cast<std::size_t>(i) % 10);
    asks.push_back(cluster.create_ask(node, transfer(from, fmt::format("{}-{}", prefix, i), 1)));
  }
  for (const auto& answer : ask_all(std::move(asks))) ASSERT_EQ(answer.status, 202U) << answer.body;
}

TEST(nats, has_the_events_of_a_node_once_in_the_order_of_the_log) {
  const NatsServer nats;
  TxCluster cluster(nodes_with(nats, 1));
  EXPECT_TRUE(eventually([&] { return cluster.node(0).metric("nats_connected") == 1; }));
  create_some(cluster, 0, "a", 50);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_TRUE(complete(cluster, nats));
  EXPECT_EQ(in_stream(nats), cluster.sql(kLog));
  EXPECT_THAT(in_stream(nats), HasSubstr("TxConfirmed"));
  const auto doctor = fencepost({"doctor", "--config", cluster.node(0).config()});
  EXPECT_THAT(doctor.out, HasSubstr("stream FENCEPOST takes fencepost.>"));
  EXPECT_EQ(cluster.node(0).stop().code, 0);
}

TEST(nats, loses_and_repeats_nothing_when_the_server_is_killed_under_load) {
  NatsServer nats;
  TxCluster cluster(nodes_with(nats, 1));
  for (int round = 0; round < 4; ++round) {
    create_some(cluster, 0, fmt::format("before-{}", round), 30);
    nats.kill();
    create_some(cluster, 0, fmt::format("down-{}", round), 30);
    // Once, the server stays away until the node has noticed; otherwise it may return before the next attempt.
    if (round == 0) {
      EXPECT_TRUE(eventually([&] { return cluster.node(0).metric("nats_failed_total") > 0; }, 60s));
    }
    nats.restart();
  }
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_TRUE(complete(cluster, nats));
  EXPECT_EQ(in_stream(nats), cluster.sql(kLog));
}

TEST(nats, another_node_continues_when_the_publishing_node_is_killed) {
  const NatsServer nats;
  TxCluster cluster(nodes_with(nats, 2, false));
  // Node 0 dies when the server has acknowledged its third batch, before the position is stored.
  cluster.node(0).start({"FENCEPOST_TEST_KILL_AT=nats.published:3"});
  ASSERT_TRUE(cluster.sql_becomes(kOwner, "node0")) << cluster.sql(kOwner);
  cluster.node(1).start();
  for (int i = 0; i < 20 && cluster.node(0).running(); ++i) create_some(cluster, 1, fmt::format("first-{}", i), 5);
  ASSERT_TRUE(cluster.node(0).dies());
  const auto died = std::chrono::steady_clock::now();
  ASSERT_TRUE(cluster.sql_becomes(kOwner, "node1", 20s));
  EXPECT_LT(std::chrono::steady_clock::now() - died, 15s);
  create_some(cluster, 1, "second", 30);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_TRUE(complete(cluster, nats));
  EXPECT_EQ(in_stream(nats), cluster.sql(kLog));
  EXPECT_GT(cluster.node(1).metric("nats_repeats_total"), 0);
}

TEST(nats, a_stream_that_does_not_fit_stops_only_the_delivery) {
  const NatsServer nats;
  nats.add_stream("FENCEPOST", {"orders.>"});
  TxCluster cluster(nodes_with(nats, 1));
  create_some(cluster, 0, "a", 5);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_TRUE(cluster.sql_becomes(
      "SELECT last_error LIKE '%do not cover fencepost.>%' FROM event_consumer WHERE consumer = 'nats/default'", "t"));
  EXPECT_THAT(cluster.node(0).output(), HasSubstr("do not cover fencepost.>"));
  EXPECT_GT(cluster.node(0).metric("nats_failed_total{reason=\"stream\"}"), 0);
  const auto doctor = fencepost({"doctor", "--config", cluster.node(0).config()});
  EXPECT_THAT(doctor.out, HasSubstr("FAIL  nats"));
  EXPECT_THAT(nats.subjects_of("FENCEPOST"), testing::ElementsAre("orders.>"));
}

TEST(nats, a_node_stops_in_time_while_the_server_is_silent) {
  NatsServer nats;
  TxCluster cluster(nodes_with(nats, 1));
  create_some(cluster, 0, "a", 5);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  ASSERT_TRUE(complete(cluster, nats));
  nats.suspend();
  create_some(cluster, 0, "b", 5);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(cluster.node(0).stop().code, 0) << cluster.node(0).output();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
  nats.resume();
}

}  // namespace
}  // namespace fencepost::test
