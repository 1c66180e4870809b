// Events on their way to clients: real nodes, a real chain, streams over HTTP and the command line.
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "tests/support/event_listener.hpp"
#include "tests/support/event_schema.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kStream = "/api/v1/events";

std::vector<std::string> types_of(const std::vector<json::value>& events) {
  std::vector<std::string> out;
  out.reserve(events.size());
  for (const auto& event : events) out.emplace_back(event.at("type").as_string());
  return out;
}

std::string key_with(const TxCluster& cluster, const std::vector<std::string>& flags) {
  std::vector<std::string> arguments{"apikey", "create", "--dsn", cluster.dsn(), "--json", "--label", "events"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const auto made = fencepost(arguments);
  EXPECT_EQ(made.status.code, 0) << made.err;
  return std::string(json::parse(made.out).at("key").as_string());
}

// The ids of all events in the log, as the stream writes them.
std::vector<std::string> logged(const TxCluster& cluster) {
  std::istringstream lines(cluster.sql("SELECT string_agg(seq::text, ' ' ORDER BY seq) FROM outbox"));
  return {std::istream_iterator<std::string>(lines), {}};
}

TEST(events, a_stream_reports_the_life_of_a_transaction_as_it_happens) {
  TxCluster cluster({.anvil = {}});
  const EventListener listener(cluster.node(0).url(kStream), cluster.key());
  ASSERT_TRUE(eventually([&] { return listener.connected(); }));
  const auto id = cluster.create(0, transfer(signer(0), "life", 1));
  ASSERT_TRUE(cluster.becomes(id, "receipt_block IS NOT NULL", "t")) << cluster.describe();
  cluster.mine(2);
  ASSERT_TRUE(eventually([&] { return listener.events().size() >= 4; }, 60s)) << cluster.describe();
  EXPECT_THAT(types_of(listener.events()), ElementsAre("TxAccepted", "TxSubmitted", "TxReceiptUpdated", "TxConfirmed"));
  for (const auto& event : listener.events()) {
    EXPECT_EQ(problems_of_event(event), std::vector<std::string>{});
    EXPECT_EQ(event.at("subject").as_string(), "tx/" + id);
    EXPECT_EQ(event.at("chain").as_string(), "31337");
  }
  EXPECT_EQ(listener.ids(), logged(cluster));
}

TEST(events, a_client_resumes_on_another_node_where_it_stopped) {
  TxCluster cluster({.nodes = 2});
  std::vector<std::string> got;
  std::string position;
  {
    const EventListener first(cluster.node(0).url(kStream), cluster.key(), "0");
    cluster.create(0, transfer(signer(0), "a", 1));
    ASSERT_TRUE(eventually([&] { return first.ids().size() >= 2; }, 60s));
    got = first.ids();
    position = first.last_id();
  }
  ASSERT_EQ(position, got.back());
  for (int i = 0; i < 20; ++i) cluster.create(0, transfer(signer(1), fmt::format("b-{}", i), 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  cluster.node(0).kill();
  const EventListener second(cluster.node(1).url(kStream), cluster.key(), position);
  const auto all = logged(cluster);
  ASSERT_TRUE(eventually([&] { return got.size() + second.ids().size() >= all.size(); }, 60s));
  for (const auto& id : second.ids()) got.push_back(id);
  EXPECT_EQ(got, all);
}

TEST(events, a_key_sees_only_its_signers_and_its_scopes) {
  TxCluster cluster;
  const auto restricted = key_with(cluster, {"--scope", "tx:read", "--signer", signer(1)});
  const EventListener all(cluster.node(0).url(kStream), cluster.key());
  const EventListener one(cluster.node(0).url(kStream), restricted);
  ASSERT_TRUE(eventually([&] { return all.connected() && one.connected(); }));
  cluster.create(0, transfer(signer(0), "x", 1));
  cluster.create(0, transfer(signer(1), "y", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  ASSERT_TRUE(eventually([&] { return all.ids() == logged(cluster); }, 60s));
  std::set<std::string> signers;
  for (const auto& event : one.events()) signers.emplace(event.at("data").at("signer").as_string());
  EXPECT_THAT(signers, ElementsAre(signer(1)));

  const auto refused = [&](const std::string& query, const std::string& key) {
    return ask({.url = cluster.node(0).url(kStream + query), .key = key}).code();
  };
  EXPECT_EQ(refused("?signer=" + signer(0), restricted), "signer_not_allowed");
  EXPECT_EQ(refused("?type=TransferCompleted", restricted), "insufficient_scope");
  EXPECT_EQ(refused("", key_with(cluster, {"--scope", "tx:write"})), "insufficient_scope");
  EXPECT_EQ(refused("?type=Nonsense", restricted), "invalid_parameter");
  EXPECT_EQ(refused("?lastEventId=999999999", restricted), "unknown_event_id");
  const auto padded = ask({.url = cluster.node(0).url("/api/v1/events?lastEventId=007"), .key = restricted});
  EXPECT_EQ(padded.json().at("parameter").as_string(), "lastEventId") << padded.body;
  EXPECT_EQ(refused("", ""), "no_api_key");
}

TEST(events, filters_choose_by_type_and_subject) {
  TxCluster cluster;
  const EventListener confirmed(cluster.node(0).url(std::string(kStream) + "?type=TxConfirmed,TxFailed"), cluster.key(),
                                "0");
  const auto first = cluster.create(0, transfer(signer(0), "x", 1));
  cluster.create(0, transfer(signer(1), "y", 1));
  const EventListener about(cluster.node(0).url(fmt::format("{}?subject=tx/{}", kStream, first)), cluster.key(), "0");
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  ASSERT_TRUE(eventually([&] { return confirmed.events().size() == 2; }, 60s));
  EXPECT_THAT(types_of(confirmed.events()), ElementsAre("TxConfirmed", "TxConfirmed"));
  ASSERT_TRUE(eventually([&] { return about.events().size() >= 4; }, 60s));
  for (const auto& event : about.events()) EXPECT_EQ(event.at("subject").as_string(), "tx/" + first);
}

TEST(events, a_stream_ends_when_its_key_is_revoked) {
  TxCluster cluster;
  const auto key = key_with(cluster, {"--scope", "tx:read"});
  const EventListener listener(cluster.node(0).url(kStream), key);
  ASSERT_TRUE(eventually([&] { return listener.connected(); }));
  auto id = key.substr(3, 32);
  for (const std::size_t at : {8, 13, 18, 23}) id.insert(at, "-");
  const auto revoked = fencepost({"apikey", "revoke", "--dsn", cluster.dsn(), id});
  ASSERT_EQ(revoked.status.code, 0) << revoked.err;
  ASSERT_TRUE(eventually([&] { return listener.ended(); }, 30s));
  EXPECT_THAT(listener.comments(), ElementsAre(HasSubstr("no longer valid")));
}

TEST(events, a_node_that_stops_ends_its_streams_at_once) {
  TxCluster cluster;
  const EventListener listener(cluster.node(0).url(kStream), cluster.key());
  ASSERT_TRUE(eventually([&] { return listener.connected(); }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(cluster.node(0).stop().code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_TRUE(eventually([&] { return listener.ended(); }));
}

TEST(events, the_command_prints_the_log) {
  TxCluster cluster;
  const auto id = cluster.create(0, transfer(signer(0), "x", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  const std::vector<std::string> env{"FENCEPOST_URL=" + cluster.node(0).url(""), "FENCEPOST_API_KEY=" + cluster.key()};
  std::vector<std::string> ids;
  ASSERT_TRUE(eventually(
      [&] {
        ids.clear();
        const auto printed = fencepost({"events", "--after", "0", "--no-follow", "--json"}, env);
        EXPECT_EQ(printed.status.code, 0) << printed.err;
        std::istringstream lines(printed.out);
        for (std::string line; std::getline(lines, line);) ids.emplace_back(json::parse(line).at("id").as_string());
        return ids == logged(cluster);
      },
      60s));
  const auto text = fencepost({"events", "--after", "0", "--no-follow", "--type", "TxConfirmed"}, env);
  EXPECT_EQ(text.status.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("TxConfirmed         tx/" + id));
  EXPECT_EQ(std::ranges::count(text.out, '\n'), 1);
  const auto wrong = fencepost({"events", "--no-follow", "--type", "Nonsense"}, env);
  EXPECT_NE(wrong.status.code, 0);
  EXPECT_THAT(wrong.err, HasSubstr("Nonsense"));
}

}  // namespace
}  // namespace fencepost::test
