// A node dies, is suspended or is cut off in the middle of its work: another node continues, and nothing is done twice.
#include <filesystem>
#include <future>
#include <regex>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json/serialize.hpp>

#include "runtime/read_file.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Expects that every requested transaction was carried out exactly once.
void expect_done_once(TxCluster& cluster, const std::string& from, std::int64_t count) {
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view"), std::to_string(count));
  EXPECT_EQ(cluster.mined_count(from), count);
  EXPECT_EQ(cluster.balance(recipient()), count);  // one wei each
  EXPECT_EQ(cluster.sql("SELECT max(nonce) + 1 FROM tx_view"), std::to_string(count));
  EXPECT_EQ(cluster.sql("SELECT next_nonce FROM signer_nonce_cursor WHERE signer = '" + from + "'"),
            std::to_string(count));
}

struct KillPoint {
  const char* name;
  TxSettings settings;
  std::vector<std::string> anvil;
  void (*provoke)(TxCluster&);  // makes the first node reach the point
};

void PrintTo(const KillPoint& point, std::ostream* out) {
  *out << point.name;
}

void nothing(TxCluster&) {}

void reorganize(TxCluster& cluster) {
  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) FROM tx_view WHERE receipt_block IS NOT NULL", "2"));
  const auto lowest = std::stoll(cluster.sql("SELECT min(receipt_block) FROM tx_view"));
  cluster.reorg(cluster.head() - lowest + 1);
}

const TxSettings kUsual;
const std::vector<std::string> kSecondBlocks{"--block-time", "1"};
const std::vector<std::string> kNoBlocks{"--no-mining"};

std::vector<KillPoint> kill_points() {
  return {
      {"lease.taken", kUsual, kSecondBlocks, nothing},
      {"lease.renewed", kUsual, kSecondBlocks, nothing},
      {"create.ready", kUsual, kSecondBlocks, nothing},
      {"create.committed", kUsual, kSecondBlocks, nothing},
      {"nonce_keeper.committed", kUsual, kSecondBlocks, nothing},
      {"promoter.committed", {.max_in_flight = 1}, kSecondBlocks, nothing},
      {"submitter.claimed", kUsual, kSecondBlocks, nothing},
      {"submitter.sent", kUsual, kSecondBlocks, nothing},
      {"submitter.committed", kUsual, kSecondBlocks, nothing},
      {"receipts.ready", kUsual, kSecondBlocks, nothing},
      {"receipts.committed", kUsual, kSecondBlocks, nothing},
      {"confirmations.ready", kUsual, kSecondBlocks, nothing},
      {"confirmations.committed", kUsual, kSecondBlocks, nothing},
      {"resubmitter.claimed", {.resubmit_interval = 300ms}, kNoBlocks, nothing},
      {"resubmitter.sent", {.resubmit_interval = 300ms}, kNoBlocks, nothing},
      {"heads.committed", {.stuck_after = 300ms}, kNoBlocks, nothing},
      {"reorg.committed", {.confirmations = "20"}, kSecondBlocks, reorganize},
  };
}

class TxKill : public testing::TestWithParam<KillPoint> {};

TEST_P(TxKill, another_node_finishes_the_work) {
  const auto& point = GetParam();
  TxCluster cluster({.nodes = 2, .settings = point.settings, .anvil = point.anvil, .start = false});
  cluster.node(1).launch();
  cluster.node(0).start({std::string("FENCEPOST_TEST_KILL_AT=") + point.name});
  const std::vector<json::object> bodies{transfer(signer(0), "one", 1), transfer(signer(0), "two", 1)};
  for (const auto& body : bodies) ask(cluster.create_ask(0, body));  // the node may die before it answers
  point.provoke(cluster);
  ASSERT_TRUE(cluster.node(0).dies()) << cluster.describe();

  // The client retries what was not answered.
  for (const auto& body : bodies) cluster.create_by_retrying(1, body);
  cluster.rpc("evm_setIntervalMining", {1});
  if (point.settings.confirmations != "2") {
    ASSERT_TRUE(
        cluster.sql_becomes("SELECT count(*) FROM tx_view WHERE receipt_block IS NOT NULL AND sub_state = "
                            "'mined' AND fencing_token > 1",
                            "2"))
        << cluster.describe();
    cluster.mine(30);
  }
  expect_done_once(cluster, signer(0), 2);
}

std::string readable(const testing::TestParamInfo<KillPoint>& info) {
  std::string name = info.param.name;
  name[name.find('.')] = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(at, TxKill, testing::ValuesIn(kill_points()), readable);

// Every point is one at which a test kills a node: here, or in another test of transactions.
TEST(tx_takeover, every_test_point_is_killed_at) {
  namespace fs = std::filesystem;
  std::set<std::string> points;
  const auto collect = [&points](const fs::path& file, const std::regex& pattern) {
    const auto text = read_file(file);
    for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it) {
      points.insert((*it)[1]);
    }
  };
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() / "src/tx")) {
    if (entry.path().extension() == ".cpp") collect(entry.path(), std::regex(R"re(test_point\("([a-z_.]+)"\))re"));
  }
  const auto in_sources = std::exchange(points, {});
  ASSERT_GE(in_sources.size(), 20U);
  // In an environment variable, in a KillPoint, or as a parameter.
  const std::regex killed_at(R"re((?:KILL_AT=|\{"(?=[a-z_.]+", [{k])|Values\(")([a-z_]+\.[a-z_]+))re");
  for (const auto& entry : fs::directory_iterator(source_dir() / "tests")) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("tx_") && read_file(entry.path()).contains("FENCEPOST_TEST_KILL_AT=")) {
      collect(entry.path(), killed_at);
    }
  }
  EXPECT_EQ(points, in_sources);
}

TEST(tx_takeover, a_killed_node_continues_after_a_restart) {
  TxCluster cluster({.start = false});
  cluster.node(0).start({"FENCEPOST_TEST_KILL_AT=submitter.sent"});
  const auto body = transfer(signer(0), "one", 1);
  ask(cluster.create_ask(0, body));
  ASSERT_TRUE(cluster.node(0).dies()) << cluster.describe();
  cluster.node(0).start();
  // After the restart it has another node id and waits for the old lease to expire.
  cluster.create_by_retrying(0, body);
  expect_done_once(cluster, signer(0), 1);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "1");
  EXPECT_EQ(cluster.sql("SELECT fencing_token FROM signer_lease"), "2");
}

// The time a takeover may take: the lease has to expire, then another node looks for orphaned signers.
constexpr auto kTakeover = 2'000ms + 200ms + 500ms + 4s;

TEST(tx_takeover, a_node_suspended_past_its_lease_is_fenced_when_it_resumes) {
  for (const auto* point :
       {"create.ready", "submitter.claimed", "submitter.sent", "receipts.ready", "confirmations.ready"}) {
    SCOPED_TRACE(point);
    TxCluster cluster({.nodes = 2, .start = false});
    cluster.node(1).launch();
    cluster.node(0).start({std::string("FENCEPOST_TEST_STOP_AT=") + point});
    // The answer comes before the node is suspended or after it resumes.
    auto first = std::async(std::launch::async,
                            [&] { return ask_all({cluster.create_ask(0, transfer(signer(0), "slept", 1))}).front(); });
    ASSERT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 0; })) << cluster.describe();
    // The other node can lead only after the lease has expired, so its create is retried.
    const auto other = cluster.create_by_retrying(1, transfer(signer(0), "awake", 1));
    EXPECT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 1; })) << cluster.describe();
    ASSERT_TRUE(cluster.becomes(other, "state", "CONFIRMED")) << cluster.describe();

    cluster.node(0).resume();
    const auto answer = first.get();
    EXPECT_TRUE(answer.status == 200 || answer.status == 202) << answer.status << answer.body;
    EXPECT_TRUE(eventually([&] { return cluster.node(0).metric("lease_fenced_total") > 0; })) << cluster.describe();
    expect_done_once(cluster, signer(0), 2);
    EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "2") << "signed more than once";
  }
}

TEST(tx_takeover, a_node_suspended_with_many_requests_in_flight_is_replaced_within_seconds) {
  TxCluster cluster({.nodes = 2, .settings = {.max_in_flight = 0}, .anvil = {"--no-mining"}});
  std::vector<Ask> asks;
  asks.reserve(200);
  for (int i = 0; i < 200; ++i) asks.push_back(cluster.create_ask(0, transfer(signer(0), fmt::format("a-{}", i), 1)));
  auto answers = std::async(std::launch::async, [&] { return ask_all(asks); });
  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) > 0 FROM tx_view", "t", 20s)) << cluster.describe();
  cluster.node(0).signal(SIGSTOP);
  const auto stopped = Clock::now();
  ASSERT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 1; }, kTakeover)) << cluster.describe();
  RecordProperty(
      "takeover_ms",
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - stopped).count()));
  // The client cannot know which requests were accepted, so it retries all of them.
  for (int i = 0; i < 200; ++i)
    asks[static_cast<std::size_t>(i)] = cluster.create_ask(1, transfer(signer(0), fmt::format("a-{}", i), 1));
  for (const auto& answer : ask_all(asks)) EXPECT_TRUE(answer.status == 200 || answer.status == 202) << answer.body;
  cluster.node(0).resume();
  answers.get();
  cluster.rpc("evm_setIntervalMining", {1});
  expect_done_once(cluster, signer(0), 200);
}

// Sessions of the first node that have a transaction open.
constexpr auto kOpenSessions =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'node0%' "
    "AND xact_start < clock_timestamp() - interval '100 ms'";

TEST(tx_takeover, a_node_suspended_with_half_a_pipeline_sent_does_not_block_its_signer) {
  TxCluster cluster({.nodes = 2, .settings = {.max_in_flight = 0}, .anvil = {"--no-mining"}, .proxied = true});
  cluster.create(0, transfer(signer(0), "first", 1));
  // One batch is larger than the kernel's buffers between node and server.
  const std::string data = "0x" + std::string(100'000, '0');
  std::vector<Ask> asks;
  const auto ask_for = [&](int first) {
    std::vector<Ask> some;
    for (int i = first; i < first + 32; ++i) {
      auto body = transfer(signer(0), fmt::format("big-{}", i), 1);
      body["payload"].as_object()["data"] = data;
      body["payload"].as_object()["gas"] = 1'000'000;
      some.push_back(cluster.create_ask(0, body));
    }
    asks.insert(asks.end(), some.begin(), some.end());
    return some;
  };
  // The proxy stops forwarding in the middle of a statement; then the node is suspended. The cut does not always fall
  // inside a statement, so the test sends more until one does.
  auto& wire = cluster.database_proxy(0);
  std::future<std::vector<Answer>> answers;
  bool caught = false;
  for (int round = 0; round < 10 && !caught; ++round) {
    if (round > 0) {
      wire.pass();
      answers.get();
    }
    const auto before = wire.bytes(Direction::kToServer);
    answers = std::async(std::launch::async, [some = ask_for(32 * round)] { return ask_all(some, 30s); });
    ASSERT_TRUE(eventually([&] { return wire.bytes(Direction::kToServer) > before + 400'000; })) << cluster.describe();
    wire.half_open(Direction::kToServer);
    caught = cluster.sql_becomes(kOpenSessions, "1", 500ms);
  }
  ASSERT_TRUE(caught) << "no statement was cut in the middle" << cluster.describe();
  cluster.node(0).signal(SIGSTOP);
  const auto stopped = Clock::now();
  ASSERT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 1; }, kTakeover)) << cluster.describe();
  EXPECT_LT(Clock::now() - stopped, kTakeover);
  EXPECT_EQ(cluster.sql(kOpenSessions), "0") << "the suspended node's session still holds its locks";

  wire.pass();
  cluster.node(0).resume();
  answers.get();
  for (auto& ask : asks) ask.url = cluster.node(1).url("/api/v1/tx");
  for (const auto& answer : ask_all(asks)) EXPECT_TRUE(answer.status == 200 || answer.status == 202) << answer.body;
  cluster.rpc("evm_setIntervalMining", {1});
  expect_done_once(cluster, signer(0), 1 + static_cast<std::int64_t>(asks.size()));
}

TEST(tx_takeover, a_leader_cut_off_from_the_database_is_replaced_and_serves_again_when_reconnected) {
  TxCluster cluster({.nodes = 2, .anvil = {"--no-mining"}, .proxied = true});
  for (int i = 0; i < 5; ++i) cluster.create(0, transfer(signer(0), fmt::format("a-{}", i), 1));
  ASSERT_EQ(cluster.leader_of(signer(0)), 0U);
  cluster.database_proxy(0).blackhole();
  ASSERT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 1; }, kTakeover)) << cluster.describe();
  for (int i = 5; i < 10; ++i) cluster.create_by_retrying(1, transfer(signer(0), fmt::format("a-{}", i), 1));
  const auto refused = ask(cluster.create_ask(0, transfer(signer(0), "a-10", 1)));
  EXPECT_NE(refused.status, 202U) << "accepted without a database";
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();

  cluster.database_proxy(0).pass();
  cluster.database_proxy(0).cut();  // statements sent during the blackhole stay unanswered
  cluster.create_by_retrying(0, transfer(signer(0), "a-10", 1));
  EXPECT_EQ(cluster.leader_of(signer(0)), 1U);
  expect_done_once(cluster, signer(0), 11);
}

TEST(tx_takeover, a_leader_cut_off_from_the_chain_still_accepts_transactions) {
  TxCluster cluster({.nodes = 2, .proxied = true});
  cluster.create(0, transfer(signer(0), "a-0", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  cluster.chain_proxy(0).refuse();
  cluster.chain_proxy(0).cut();
  for (int i = 1; i < 5; ++i) cluster.create(i % 2, transfer(signer(0), fmt::format("a-{}", i), 1));
  // Wait until a lease that is not renewed would have expired.
  const auto until = cluster.sql("SELECT clock_timestamp() + interval '4 s'");
  ASSERT_TRUE(cluster.sql_becomes("SELECT clock_timestamp() > '" + until + "'", "t"));
  EXPECT_EQ(cluster.leader_of(signer(0)), 0U);
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
  cluster.chain_proxy(0).pass();
  expect_done_once(cluster, signer(0), 5);
}

TEST(tx_takeover, a_node_that_shuts_down_releases_its_signers_at_once) {
  // Lease and interval are too long for expiry or polling to explain the takeover: only the release can.
  TxCluster cluster(
      {.nodes = 2, .settings = {.lease_duration = 120s, .renew_interval = 50s}, .anvil = {"--no-mining"}});
  for (int i = 0; i < 5; ++i) cluster.create(0, transfer(signer(0), fmt::format("a-{}", i), 1));
  ASSERT_EQ(cluster.leader_of(signer(0)), 0U);
  const auto ended = cluster.node(0).stop();
  EXPECT_TRUE(ended.success()) << ended.to_string() << cluster.describe();
  EXPECT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 1; }, 5s)) << cluster.describe();
  cluster.rpc("evm_setIntervalMining", {1});
  expect_done_once(cluster, signer(0), 5);
}

// A psql session that locks a row delays only the work on that row.
TEST(tx_takeover, a_lease_locked_by_psql_does_not_delay_the_adoption_of_others) {
  TxCluster cluster({.nodes = 2, .anvil = {"--no-mining"}});
  for (std::size_t i = 0; i < 4; ++i) cluster.create(0, transfer(signer(i), "x", 1));
  interleaving::Session psql(cluster.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("SELECT FROM signer_lease WHERE signer = $1 FOR UPDATE", pg::Params::of(signer(2)));
  cluster.node(0).kill();
  for (const std::size_t i : {0, 1, 3}) {
    EXPECT_TRUE(eventually([&] { return cluster.leader_of(signer(i)) == 1; }, 60s)) << i << cluster.describe();
  }
  psql.must("COMMIT");
  EXPECT_TRUE(eventually([&] { return cluster.leader_of(signer(2)) == 1; }, 60s)) << cluster.describe();
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
}

TEST(tx_takeover, a_transaction_locked_by_psql_does_not_delay_the_end_of_others) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  std::vector<std::string> ids;
  ids.reserve(4);
  for (std::size_t i = 0; i < 4; ++i) ids.push_back(cluster.create(0, transfer(signer(i), "x", 1)));
  for (const auto& id : ids) ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  interleaving::Session psql(cluster.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("SELECT FROM tx_open WHERE tx_id = $1::uuid FOR UPDATE", pg::Params::of(ids[2]));
  cluster.mine(4);
  for (const std::size_t i : {0, 1, 3}) {
    EXPECT_TRUE(cluster.becomes(ids[i], "state", "CONFIRMED")) << i << cluster.describe();
  }
  EXPECT_EQ(cluster.column(ids[2], "state"), "TRACKING");
  psql.must("COMMIT");
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
}

}  // namespace
}  // namespace fencepost::test
