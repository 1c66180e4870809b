// PostgreSQL is restarted while clients create transactions. Clients that get no answer retry with the same requestId,
// and nothing is lost or done twice.
#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kClients = 8;
constexpr std::size_t kEach = 25;

TEST(tx_database, a_restart_of_postgresql_under_load_loses_no_transaction_and_repeats_none) {
  // Commits must survive a crash here. Other tests run without synchronous_commit.
  TestCluster server({{"synchronous_commit", "on"}});
  TxCluster cluster({.nodes = 2, .settings = {.max_in_flight = 0}, .dsn = server.dsn()});
  std::atomic<std::size_t> accepted{0};
  std::atomic<std::size_t> lost{0};
  {
    std::vector<std::jthread> clients;
    clients.reserve(kClients);
    for (std::size_t client = 0; client < kClients; ++client) {
      clients.emplace_back([&, client] {
        for (std::size_t i = 0; i < kEach; ++i) {
          const auto body = transfer(signer(client % 2), fmt::format("c{}-{}", client, i), 1);
          Answer answer;
          const bool done = eventually(
              [&, node = client]() mutable {
                answer = ask(cluster.create_ask(node++ % 2, body));
                if (answer.status == 200 || answer.status == 202) return true;
                ++lost;
                // A refusal would be wrong: the request may have been accepted.
                EXPECT_TRUE(answer.status == 0 || answer.status == 503 || answer.code() == "not_leader")
                    << answer.status << answer.body;
                return false;
              },
              60s);
          EXPECT_TRUE(done) << answer.status << answer.body << cluster.describe();
          if (!done) return;
          ++accepted;
        }
      });
    }
    // First a clean restart, then a crash.
    ASSERT_TRUE(eventually([&] { return accepted > kClients * kEach / 4; }, 60s));
    ASSERT_TRUE(server->restart());
    ASSERT_TRUE(eventually([&] { return accepted > kClients * kEach / 2; }, 60s));
    server->kill();
    ASSERT_TRUE(server->restart());
  }
  EXPECT_EQ(accepted, kClients * kEach);
  EXPECT_GT(lost, 0U) << "no request failed: the restarts came too late to test anything";
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  const auto all = static_cast<std::int64_t>(kClients * kEach);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view"), std::to_string(all));
  EXPECT_EQ(cluster.mined_count(signer(0)) + cluster.mined_count(signer(1)), all);
  EXPECT_EQ(cluster.balance(recipient()), all);
  EXPECT_EQ(cluster.sql("SELECT count(DISTINCT (signer, nonce)) FROM tx_view"), std::to_string(all));
  EXPECT_EQ(cluster.sql("SELECT max(nonce) FROM tx_view"), std::to_string(all / 2 - 1));
}

}  // namespace
}  // namespace fencepost::test
