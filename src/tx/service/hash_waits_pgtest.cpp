// Requests that wait for a hash: woken by this node's announcement, or by what the database says.
#include "pg/database.hpp"
#include "tests/support/postgres.hpp"
#include "tx/service/hash_waits.hpp"
#include "tx/store/protocol_test_support.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;

class HashWaitsTest : public ::testing::Test {
 protected:
  HashWaitsTest() {
    runtime_.start();
    runtime_.run_on(0, database_.start());
    runtime_.run_on(0, [](HashWaits& waits) -> awaitable<> {
      waits.start();
      co_return;
    }(waits_));
  }
  ~HashWaitsTest() override {
    runtime_.run_on(0, waits_.stop());
    runtime_.run_on(0, database_.stop(1s));
    runtime_.stop();
  }

  // A transaction with a nonce. `hash` and `error` are SQL.
  Uuid insert(const std::string& state, const std::string& hash, const std::string& error) {
    const auto id = ids_.next();
    db_.exec(fmt::format(
        "INSERT INTO managed_tx (tx_id, chain_id, signer, creation_seq, nonce, payload, payload_hash, gas_limit) "
        "VALUES ('{0}', 1, '0x{1:040x}', {1}, {1}, '{{}}', '', 21000); "
        "INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, tx_hash, error_message, fencing_token) "
        "VALUES (1, '0x{1:040x}', {1}, '{0}', '{2}', {3}, {4}, 1)",
        id.to_string(), ++count_, state, hash, error));
    return id;
  }

  using Outcome = std::optional<HashOutcome>;
  static awaitable<Outcome> wait(HashWaits& waits, Uuid tx_id, std::chrono::milliseconds patience) {
    const auto one = waits.begin(tx_id, co_await this_executor());
    co_return co_await one->outcome(std::chrono::steady_clock::now() + patience);
  }
  static awaitable<Outcome> announce_and_wait(HashWaits& waits, Uuid tx_id) {
    const auto one = waits.begin(tx_id, co_await this_executor());
    const auto other = waits.begin(tx_id, co_await this_executor());
    waits.announce({{tx_id, "0xab"}});
    const auto second = co_await other->outcome(std::chrono::steady_clock::now() + 20s);
    EXPECT_EQ(second->tx_hash, "0xab");
    co_return co_await one->outcome(std::chrono::steady_clock::now() + 20s);
  }
  static awaitable<bool> is_full(HashWaits& waits, Uuid tx_id) {
    const auto one = waits.begin(tx_id, co_await this_executor());
    const auto two = waits.begin(tx_id, co_await this_executor());
    const auto three = waits.begin(tx_id, co_await this_executor());
    co_return two != nullptr&& three == nullptr;
  }

  test::TestDatabase db_{test::Template::kMigrated};
  SystemClock clock_;
  SystemRandom random_;
  UuidGenerator ids_{clock_, random_};
  Runtime runtime_{{.threads = 2}};
  Metrics metrics_;
  pg::Database database_{runtime_, test::connect_options(db_.dsn()), {.shared_connections = 1}, metrics_};
  HashWaits waits_{runtime_.executor(0), database_, 2, metrics_};
  int count_ = 0;
};

TEST_F(HashWaitsTest, an_announcement_wakes_every_request_of_the_transaction) {
  const auto outcome = runtime_.run_on(1, announce_and_wait(waits_, ids_.next()));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->tx_hash, "0xab");
}

TEST_F(HashWaitsTest, a_hash_that_another_node_stored_is_found) {
  const auto id = insert("TRACKING", "'0xcd'", "NULL");
  const auto outcome = runtime_.run_on(1, wait(waits_, id, 20s));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->tx_hash, "0xcd");
}

TEST_F(HashWaitsTest, a_transaction_that_is_stuck_without_a_hash_ends_the_wait) {
  const auto id = insert("STUCK", "NULL", "'the chain has no base fee'");
  const auto outcome = runtime_.run_on(1, wait(waits_, id, 20s));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->tx_hash, std::nullopt);
  EXPECT_EQ(outcome->state, "STUCK");
  EXPECT_EQ(outcome->why, "the chain has no base fee");
}

TEST_F(HashWaitsTest, an_unsigned_transaction_waits_until_the_deadline) {
  const auto id = insert("ALLOCATED", "NULL", "NULL");
  EXPECT_FALSE(runtime_.run_on(1, wait(waits_, id, 500ms)));
}

TEST_F(HashWaitsTest, only_so_many_may_wait) {
  EXPECT_TRUE(runtime_.run_on(1, is_full(waits_, ids_.next())));
  EXPECT_TRUE(runtime_.run_on(1, is_full(waits_, ids_.next()))) << "a request that has ended no longer counts";
}

}  // namespace
}  // namespace fencepost::tx
