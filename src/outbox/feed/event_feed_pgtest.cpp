// The feed on a real log.
#include "outbox/feed/event_feed.hpp"
#include "outbox/feed/feed_fixture_test_support.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using Seqs = std::vector<std::int64_t>;

class EventFeedTest : public testing::FeedFixture {
 protected:
  // What a reader at `position` gets until there is nothing more, on the given loop.
  Seqs read_all(std::int64_t& position, std::size_t loop = 0) {
    return runtime_.run_on(loop, [](EventFeed& feed, std::int64_t& at) -> awaitable<Seqs> {
      Seqs out;
      for (;;) {
        const auto slice = co_await feed.read(at);
        if (slice.empty()) co_return out;
        for (const auto& event : slice.events()) out.push_back(event.seq);
        at = slice.through;
      }
    }(*feed_, position));
  }
  // Reads until `count` events have come.
  Seqs read(std::int64_t& position, std::size_t count, std::size_t loop = 0) {
    Seqs out;
    EXPECT_TRUE(test::eventually([&] {
      std::ranges::copy(read_all(position, loop), std::back_inserter(out));
      if (out.size() < count) wait(position, 50ms, loop);
      return out.size() >= count;
    })) << out.size()
        << " of " << count;
    return out;
  }
  bool wait(std::int64_t after, std::chrono::milliseconds patience, std::size_t loop = 0) {
    return runtime_.run_on(loop, feed_->wait_beyond(after, std::chrono::steady_clock::now() + patience));
  }
};

Seqs count_from(std::int64_t first, std::int64_t last) {
  Seqs out;
  for (auto n = first; n <= last; ++n) out.push_back(n);
  return out;
}

TEST_F(EventFeedTest, offers_each_event_once_and_in_order_to_readers_on_every_loop) {
  launch({.poll_interval = 1h});
  std::int64_t first = 0, second = 0;
  append(3);
  EXPECT_EQ(read(first, 3), count_from(1, 3));
  append(2);
  EXPECT_EQ(read(first, 2), count_from(4, 5));
  EXPECT_EQ(read(second, 5, 1), count_from(1, 5));
}

TEST_F(EventFeedTest, a_commit_wakes_a_waiting_reader_without_a_poll) {
  launch({.poll_interval = 1h});
  ASSERT_TRUE(test::eventually([&] { return listener_.mode() == pg::Listener::Mode::kListening; }));
  auto heard =
      asio::co_spawn(runtime_.loop(1), feed_->wait_beyond(0, std::chrono::steady_clock::now() + 20s), asio::use_future);
  append(1);
  EXPECT_TRUE(heard.get());
}

TEST_F(EventFeedTest, a_wait_ends_at_its_deadline) {
  launch();
  EXPECT_FALSE(wait(0, 20ms));
  EXPECT_FALSE(wait(0, 20ms, 1));
}

TEST_F(EventFeedTest, a_stop_ends_waits) {
  launch();
  auto heard =
      asio::co_spawn(runtime_.loop(1), feed_->wait_beyond(0, std::chrono::steady_clock::now() + 1h), asio::use_future);
  runtime_.run_on(0, feed_->stop());
  EXPECT_THROW(heard.get(), boost::system::system_error);
}

TEST_F(EventFeedTest, nothing_is_skipped_when_a_slow_transaction_commits_after_faster_ones) {
  launch({.poll_interval = 10ms});
  std::int64_t position = 0;
  append(1);
  ASSERT_EQ(read(position, 1), Seqs{1});
  testing::Writer slow(db_.dsn());
  slow.begin();
  slow.append("tx/slow");
  append(5);
  EXPECT_FALSE(wait(position, 200ms));
  EXPECT_EQ(read_all(position), Seqs{});
  slow.run("COMMIT");
  EXPECT_EQ(read(position, 6), count_from(2, 7));
}

TEST_F(EventFeedTest, events_that_commit_while_an_earlier_one_is_waited_for_need_no_poll) {
  launch({.poll_interval = 1h});
  ASSERT_TRUE(test::eventually([&] { return listener_.mode() == pg::Listener::Mode::kListening; }));
  std::int64_t position = 0;
  testing::Writer slow(db_.dsn());
  slow.begin();
  slow.append("tx/slow");
  feed_->wake();
  ASSERT_TRUE(test::eventually([&] { return metric("fencepost_outbox_horizon_age_seconds") > 0; }));
  // Its notification comes while the feed waits for the first event.
  slow.append("tx/slow");
  slow.run("COMMIT");
  EXPECT_EQ(read(position, 2), count_from(1, 2));
}

TEST_F(EventFeedTest, a_transaction_of_another_database_holds_the_horizon_and_is_named) {
  const test::TestDatabase other;
  testing::Writer holder(other.dsn() + "&application_name=batch%20job");
  holder.begin();
  launch({.poll_interval = 10ms});
  append(1);
  std::int64_t position = 0;
  EXPECT_FALSE(wait(position, 100ms));
  const auto named = runtime_.run_on(0, [](pg::Database& database) -> awaitable<std::optional<HorizonHolder>> {
    co_return co_await find_horizon_holder(database.pool());
  }(database_));
  ASSERT_TRUE(named);
  EXPECT_NE(named->who.find("batch job"), std::string::npos) << named->who;
  EXPECT_NE(named->who.find(other.name()), std::string::npos) << named->who;
  EXPECT_NE(metrics_.scrape().find("fencepost_outbox_horizon_age_seconds 0."), std::string::npos);
  holder.run("COMMIT");
  EXPECT_EQ(read(position, 1), Seqs{1});
}

TEST_F(EventFeedTest, steps_that_are_not_announced_are_not_offered) {
  launch();
  db_.exec("INSERT INTO event (subject, to_state, node, why) VALUES ('tx/1', 'S', 'n', 'w')");
  append(1);
  std::int64_t position = 0;
  EXPECT_EQ(read(position, 1), Seqs{2});
}

TEST_F(EventFeedTest, a_reader_that_is_behind_memory_reads_the_log) {
  append(2'500);
  launch({.max_events = 10});
  append(500);
  std::int64_t position = 0;
  EXPECT_EQ(read(position, 3'000), count_from(1, 3'000));
  std::int64_t middle = 1'234;
  EXPECT_EQ(read(middle, 1'766, 1), count_from(1'235, 3'000));
}

TEST_F(EventFeedTest, readers_that_are_behind_share_the_reading) {
  append(5'000);
  launch();
  append(1);
  std::int64_t end = 0;
  ASSERT_EQ(read(end, 5'001).size(), 5'001);
  const auto reads = [&] { return metric("fencepost_outbox_page_reads_total"); };
  const auto before = reads();
  for (int reader = 0; reader < 100; ++reader) {
    std::int64_t position = 0;
    EXPECT_EQ(read_all(position, static_cast<std::size_t>(reader % 2)).size(), 5'001);
  }
  EXPECT_LE(reads() - before, 101);  // only the last page, which is not full yet, is read anew
}

TEST_F(EventFeedTest, a_hole_in_the_numbers_costs_one_query_and_no_gap) {
  append(1);
  db_.exec("ALTER TABLE event ALTER COLUMN seq RESTART WITH 900000000");
  append(1);
  launch();
  append(1);
  std::int64_t position = 0;
  EXPECT_EQ(read(position, 3), (Seqs{1, 900'000'000, 900'000'001}));
}

TEST_F(EventFeedTest, a_reader_whose_events_were_removed_is_told_from_where_to_where) {
  append(3);
  db_.exec("ALTER TABLE event DISABLE TRIGGER event_is_append_only; DELETE FROM event");
  append(2);
  launch();
  std::int64_t position = 1;
  EXPECT_EQ(read(position, 3), (Seqs{3, 4, 5}));
  const auto first = runtime_.run_on(0, feed_->read(1));
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(first.events()[0].type, kGapType);
  EXPECT_NE(first.events()[0].envelope.find(R"("data":{"gap":true,"from":"2","to":"3"})"), std::string::npos);
  std::int64_t from_the_oldest = 0, after_the_gap = 3;
  EXPECT_EQ(read(from_the_oldest, 2), (Seqs{4, 5}));
  EXPECT_EQ(read(after_the_gap, 2), (Seqs{4, 5}));
}

TEST_F(EventFeedTest, a_reader_is_told_when_everything_was_removed) {
  append(3);
  launch();
  std::int64_t position = 1;
  db_.exec("ALTER TABLE event DISABLE TRIGGER event_is_append_only; DELETE FROM event");
  EXPECT_EQ(read(position, 1), Seqs{3});
  EXPECT_EQ(position, 3);
  append(1);
  EXPECT_EQ(read(position, 1), Seqs{4});
}

TEST_F(EventFeedTest, readers_wait_until_the_events_before_the_start_are_settled) {
  testing::Writer slow(db_.dsn());
  slow.begin();
  slow.append("tx/slow");
  append(2);
  launch({.poll_interval = 10ms});
  std::int64_t position = 0;
  EXPECT_EQ(read_all(position), Seqs{});
  EXPECT_FALSE(wait(0, 100ms));
  slow.run("COMMIT");
  EXPECT_TRUE(wait(0, 20s));
  EXPECT_EQ(read(position, 3), count_from(1, 3));
}

TEST_F(EventFeedTest, memory_is_bounded_by_bytes_too) {
  launch({.max_bytes = 50'000});
  std::int64_t position = 0;
  for (int i = 0; i < 20; ++i) {
    append(10);
    EXPECT_EQ(read(position, 10).size(), 10);
  }
  const auto held = metric("fencepost_outbox_events_held");
  EXPECT_GT(held, 0);
  EXPECT_LT(held, 150);
}

}  // namespace
}  // namespace fencepost::outbox
