// Consumers on a real log, served by one or two nodes. What is settled depends on every transaction of the server, so
// these tests have a server of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "outbox/delivery/delivery_test_support.hpp"
#include "outbox/log_test_support.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using testing::DeliveryNode;

class ConsumerManagerTest : public ::testing::Test {
 protected:
  testing::Receiver& add(const std::string& consumer, const std::string& type = "") {
    auto& receiver = *receivers_.emplace(consumer, std::make_unique<testing::Receiver>()).first->second;
    receiver.type = type;
    db_.exec(fmt::format("INSERT INTO event_consumer (consumer, position) VALUES ('{}', 0)", consumer));
    db_.exec("NOTIFY event_consumer");
    return receiver;
  }
  void append(int count, const std::string& type = "TxConfirmed", int subjects = 3) {
    db_.exec(
        fmt::format("INSERT INTO event (type, subject, data) SELECT '{}', 'tx/' || n % {}, jsonb_build_object("
                    "'signer', '0xa', 'chainId', 1) FROM generate_series(1, {}) AS n",
                    type, subjects, count));
  }
  std::string owner(const std::string& consumer) {
    return db_.exec(fmt::format(
        "SELECT owner_node FROM event_consumer WHERE consumer = '{}' AND claimed_until > clock_timestamp()", consumer));
  }
  std::string position(const std::string& consumer) {
    return db_.exec(fmt::format("SELECT position FROM event_consumer WHERE consumer = '{}'", consumer));
  }
  std::string newest() { return db_.exec("SELECT max(seq) FROM event"); }
  // Every event of the log came, and those of one subject in their order.
  void expect_complete(const testing::Inbox& inbox) {
    for (const auto& [subject, seqs] : inbox.first_by_subject()) {
      EXPECT_TRUE(std::ranges::is_sorted(seqs)) << subject;
      EXPECT_EQ(std::to_string(seqs.size()),
                db_.exec(fmt::format("SELECT count(*) FROM event WHERE subject = '{}'", subject)));
    }
  }

  testing::OwnServer own_;
  test::TestDatabase db_{test::Template::kMigrated};
  testing::Receivers receivers_;
};

TEST_F(ConsumerManagerTest, delivers_every_event_in_order_and_stores_the_position) {
  auto& receiver = add("memory/a");
  append(25);
  DeliveryNode node(db_.dsn(), "one");
  node.serve(receivers_);
  EXPECT_TRUE(eventually([&] { return receiver.inbox.size() == 25; }));
  append(25);
  EXPECT_TRUE(eventually([&] { return position("memory/a") == newest(); }));
  EXPECT_EQ(receiver.inbox.size(), 50) << "nothing is repeated without a crash";
  expect_complete(receiver.inbox);
}

TEST_F(ConsumerManagerTest, skipped_events_move_the_position_too) {
  auto& receiver = add("memory/a", "TxAccepted");
  DeliveryNode node(db_.dsn(), "one");
  node.serve(receivers_);
  append(500);
  append(1, "TxAccepted");
  append(500);
  EXPECT_TRUE(eventually([&] { return position("memory/a") == newest(); }));
  EXPECT_EQ(receiver.inbox.size(), 1);
}

TEST_F(ConsumerManagerTest, a_stuck_or_failing_receiver_delays_no_other) {
  std::vector<testing::Receiver*> bad{&add("memory/b"), &add("memory/c"), &add("memory/d"), &add("memory/e")};
  bad[0]->stuck = bad[1]->stuck = true;
  bad[2]->failing = bad[3]->failing = true;
  auto& good = add("memory/a");
  DeliveryNode node(db_.dsn(), "one");
  node.serve(receivers_);
  append(100);
  EXPECT_TRUE(eventually([&] { return good.inbox.size() == 100; }));
  EXPECT_TRUE(eventually([&] {
    return db_.exec("SELECT last_error FROM event_consumer WHERE consumer = 'memory/d' AND failing_since IS NOT NULL")
               .find("the receiver is down") != std::string::npos;
  }));
  EXPECT_EQ(bad[0]->inbox.size() + bad[2]->inbox.size(), 0);
  for (auto* receiver : bad) receiver->stuck = receiver->failing = false;
  for (auto* receiver : bad) EXPECT_TRUE(eventually([&] { return receiver->inbox.size() >= 100; }));
  for (auto* receiver : bad) expect_complete(receiver->inbox);
  EXPECT_TRUE(eventually([&] { return db_.exec("SELECT count(failing_since) FROM event_consumer") == "0"; }));
}

TEST_F(ConsumerManagerTest, nodes_share_the_consumers_and_hand_them_over_without_repeats) {
  for (int i = 0; i < 6; ++i) add(fmt::format("memory/{}", i));
  const auto claims = [this](const std::string& node) {
    return db_.exec(fmt::format("SELECT count(*) FROM event_consumer WHERE owner_node = '{}'", node));
  };
  DeliveryNode one(db_.dsn(), "one");
  one.serve(receivers_);
  EXPECT_TRUE(eventually([&] { return claims("one") == "6"; }));
  append(50);
  DeliveryNode two(db_.dsn(), "two");
  two.serve(receivers_);
  EXPECT_TRUE(eventually([&] { return claims("one") == "3" && claims("two") == "3"; }));
  append(50);
  one.stop();
  EXPECT_TRUE(eventually([&] { return claims("two") == "6"; }));
  append(50);
  for (const auto& [consumer, receiver] : receivers_) {
    EXPECT_TRUE(eventually([&] { return receiver->inbox.size() >= 150; })) << consumer;
    EXPECT_EQ(receiver->inbox.size(), 150) << consumer;
    expect_complete(receiver->inbox);
  }
}

// The first node stops renewing while a delivery is in flight, as a process that is suspended. The other node takes
// over when the claim has expired. When the first node wakes up, it can no longer move the position.
TEST_F(ConsumerManagerTest, a_node_that_wakes_up_after_a_takeover_writes_nothing) {
  auto& receiver = add("memory/a");
  append(30);
  receiver.stuck = true;
  auto asleep = testing::quick();
  asleep.renew_interval = 1h;
  DeliveryNode zombie(db_.dsn(), "zombie", asleep);
  zombie.serve(receivers_);
  ASSERT_TRUE(eventually([&] { return receiver.inside == 1; }));

  const auto began = std::chrono::steady_clock::now();
  DeliveryNode heir(db_.dsn(), "heir");
  heir.serve(receivers_);
  ASSERT_TRUE(eventually([&] { return receiver.inside == 2; }));  // the heir delivers the same batch
  EXPECT_EQ(owner("memory/a"), "heir");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  const auto before = db_.exec("SELECT claim_token FROM event_consumer");
  receiver.stuck = false;
  EXPECT_TRUE(eventually([&] { return position("memory/a") == newest(); }));
  append(30);
  EXPECT_TRUE(eventually([&] { return position("memory/a") == newest(); }));
  EXPECT_EQ(owner("memory/a"), "heir");
  EXPECT_EQ(db_.exec("SELECT claim_token FROM event_consumer"), before);
  expect_complete(receiver.inbox);
  EXPECT_LE(receiver.inbox.size(), 60 + 10) << "only the batch in flight is repeated";
}

TEST_F(ConsumerManagerTest, consumers_are_added_paused_changed_and_removed_while_it_runs) {
  DeliveryNode node(db_.dsn(), "one", {.renew_interval = 1min, .stop_grace = 300ms});  // only notifications help
  node.serve(receivers_);
  ASSERT_TRUE(eventually([&] { return db_.exec("SELECT count(*) FROM event_worker") == "1"; }));
  auto& receiver = add("memory/a");
  append(3);
  EXPECT_TRUE(eventually([&] { return receiver.inbox.size() == 3; }));
  const auto run = [&](const pg::Statement& statement, auto... values) {
    node.runtime().run_on(0, [](pg::Pool& pool, pg::Batch batch) -> awaitable<> {
      co_await pool.run(std::move(batch));
    }(node.database().pool_of(0), std::move(pg::Batch().add(statement, values...).add(sql::kAnnounceConsumers))));
  };
  run(sql::kSetConsumerActive, "memory/a", false);
  EXPECT_TRUE(eventually([&] { return owner("memory/a").empty(); }));
  append(3);
  run(sql::kSetConsumerActive, "memory/a", true);
  EXPECT_TRUE(eventually([&] { return receiver.inbox.size() == 6; }));
  receiver.type = "TxAccepted";
  run(sql::kTouchConsumer, "memory/a");  // makes the sink again
  append(3);
  append(1, "TxAccepted");
  EXPECT_TRUE(eventually([&] { return receiver.inbox.types().back() == "TxAccepted"; }));
  EXPECT_NE(node.metrics().scrape().find("fencepost_event_consumer_lag_seconds{consumer=\"memory/a\"}"),
            std::string::npos);
  run(sql::kRemoveConsumer, "memory/a");
  EXPECT_TRUE(eventually([&] { return node.metrics().scrape().find("consumer=\"memory/a\"") == std::string::npos; }));
}

TEST_F(ConsumerManagerTest, lag_counts_from_the_oldest_event_that_is_not_handled) {
  auto& receiver = add("memory/a");
  receiver.stuck = true;
  db_.exec(
      "INSERT INTO event (at, type, subject, data) VALUES (clock_timestamp() - interval '2 seconds', 'TxConfirmed', "
      "'tx/1', '{}')");
  append(4);
  DeliveryNode node(db_.dsn(), "one");
  node.serve(receivers_);
  auto& seconds = node.metrics().gauge("event_consumer_lag_seconds", "", {{"consumer", "memory/a"}});
  auto& events = node.metrics().gauge("event_consumer_lag_events", "", {{"consumer", "memory/a"}});
  EXPECT_TRUE(eventually([&] { return seconds.Value() >= 2 && events.Value() == 5; }));
  receiver.stuck = false;
  EXPECT_TRUE(eventually([&] { return seconds.Value() == 0 && events.Value() == 0; }));
}

}  // namespace
}  // namespace fencepost::outbox
