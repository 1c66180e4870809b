#include <algorithm>
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "outbox/feed/event_pages.hpp"
#include "outbox/log_test_support.hpp"
#include "outbox/outbox_store.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::outbox {
namespace {

using testing::OwnServer;
using testing::Writer;

class OutboxStore : public ::testing::Test {
 protected:
  // The events that a reader at position `after_` gets now.
  awaitable<std::vector<std::int64_t>> read(pg::Pool& pool, std::size_t limit = 100) {
    const auto settled = co_await settled_.advance(pool);
    const EventCatalog none({});
    const auto events = co_await read_log(pool, none, after_, settled, limit);
    std::vector<std::int64_t> out;
    out.reserve(events.size());
    for (const auto& event : events) out.push_back(event.seq);
    if (!out.empty()) after_ = out.back();
    co_return out;
  }

  using Seqs = std::vector<std::int64_t>;
  OwnServer own_;
  test::TestDatabase db_{test::Template::kMigrated};
  Settled settled_;
  std::int64_t after_ = 0;
};

TEST_F(OutboxStore, gives_events_once_and_in_order) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    EXPECT_EQ(co_await read(pool), Seqs{});
    Writer writer(db_.dsn());
    for (int i = 0; i < 5; ++i) writer.append("a");
    EXPECT_EQ(co_await read(pool, 3), (Seqs{1, 2, 3}));
    EXPECT_EQ(co_await read(pool, 3), (Seqs{4, 5}));
    EXPECT_EQ(co_await read(pool, 3), Seqs{});
  });
}

TEST_F(OutboxStore, waits_for_an_event_with_a_smaller_number_that_is_not_committed_yet) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    Writer slow(db_.dsn()), fast(db_.dsn());
    slow.begin();
    slow.append("slow");
    fast.append("fast");
    EXPECT_EQ(co_await read(pool), Seqs{});
    slow.run("COMMIT");
    EXPECT_EQ(co_await read(pool), (Seqs{1, 2}));
  });
}

// The older transaction takes the later number: it began first, then waited for a lock.
TEST_F(OutboxStore, waits_for_a_smaller_number_of_a_younger_transaction) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    Writer older(db_.dsn()), younger(db_.dsn());
    older.begin();
    younger.begin();
    younger.append("a");
    older.append("b");
    older.run("COMMIT");
    // A reader that compares only transaction ids treats number 2 as settled and skips number 1.
    EXPECT_EQ(db_.exec("SELECT seq FROM event WHERE xid < pg_snapshot_xmin(pg_current_snapshot())"), "2");
    EXPECT_EQ(co_await read(pool), Seqs{});
    younger.run("COMMIT");
    EXPECT_EQ(co_await read(pool), (Seqs{1, 2}));
  });
}

TEST_F(OutboxStore, does_not_wait_for_a_number_that_was_rolled_back) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    Writer failed(db_.dsn()), fine(db_.dsn());
    failed.begin();
    failed.append("a");
    fine.append("b");
    failed.run("ROLLBACK");
    EXPECT_EQ(co_await read(pool), Seqs{2});
  });
}

TEST_F(OutboxStore, a_transaction_that_begins_later_does_not_delay_settled_events) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    Writer first(db_.dsn()), second(db_.dsn()), third(db_.dsn());
    first.begin();
    first.append("a");
    third.append("c");
    EXPECT_EQ(co_await read(pool), Seqs{});
    second.begin();
    second.append("b");
    first.run("COMMIT");
    EXPECT_EQ(co_await read(pool), (Seqs{1, 2}));
    second.run("COMMIT");
    EXPECT_EQ(co_await read(pool), Seqs{3});
  });
}

// A transaction must have its id before it takes a number: otherwise the snapshot's xmin would not account for it.
TEST_F(OutboxStore, the_transaction_id_is_assigned_before_the_number) {
  for (const auto* rows :
       {"VALUES ('T', 'a', '{}'::jsonb)", "SELECT 'T', 'a', '{}'::jsonb FROM generate_series(1, 9)"}) {
    // PostgreSQL computes the columns in the order of the plan's output.
    const auto plan = db_.exec(
        fmt::format("EXPLAIN (VERBOSE, COSTS off, FORMAT JSON) INSERT INTO event (type, subject, data) {}", rows));
    const auto xid = plan.find("pg_current_xact_id()"), seq = plan.find("nextval(");
    EXPECT_NE(seq, std::string::npos) << plan;
    EXPECT_LT(xid, seq) << plan;
  }
}

TEST_F(OutboxStore, loses_no_event_of_concurrent_writers) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    std::mt19937 engine(7);
    const auto pick = [&engine](int below) { return std::uniform_int_distribution<int>(0, below - 1)(engine); };
    struct Open {
      Writer writer;
      bool open = false;
      Seqs seqs;
    };
    std::vector<Open> writers;
    writers.reserve(5);
    for (int i = 0; i < 5; ++i) writers.push_back({Writer(db_.dsn())});
    Seqs committed, seen;
    for (int i = 0; i < 600; ++i) {
      auto& w = writers[static_cast<std::size_t>(pick(5))];
      if (!w.open) {
        w.writer.begin();
        w.open = true;
      } else if (pick(3) > 0) {
        w.seqs.push_back(w.writer.append("s"));
      } else {
        const bool commit = pick(4) > 0;
        w.writer.run(commit ? "COMMIT" : "ROLLBACK");
        if (commit) committed.insert(committed.end(), w.seqs.begin(), w.seqs.end());
        w.seqs.clear();
        w.open = false;
      }
      if (i % 3 == 0) std::ranges::copy(co_await read(pool), std::back_inserter(seen));
    }
    const auto before_the_end = seen.size();
    for (auto& w : writers) {
      if (w.open) w.writer.run("ROLLBACK");
    }
    for (int i = 0; i < 2; ++i) std::ranges::copy(co_await read(pool), std::back_inserter(seen));
    std::ranges::sort(committed);
    EXPECT_EQ(seen, committed);
    EXPECT_GT(before_the_end, committed.size() / 2);
  });
}

TEST_F(OutboxStore, nothing_is_settled_in_an_empty_log) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    EXPECT_EQ(co_await settled_.advance(pool), 0);
    Writer writer(db_.dsn());
    const auto seq = writer.append("a");
    EXPECT_EQ(co_await settled_.advance(pool), seq);
  });
}

// A sequence does not roll back, so the settled seq may be above every event.
TEST_F(OutboxStore, a_number_that_no_row_has_becomes_settled) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    Writer failed(db_.dsn());
    failed.begin();
    const auto lost = failed.append("a");
    EXPECT_EQ(co_await settled_.advance(pool), 0);
    failed.run("ROLLBACK");
    EXPECT_EQ(co_await settled_.advance(pool), lost);
    EXPECT_EQ(co_await read(pool), Seqs{});
    const auto seq = failed.append("a");
    EXPECT_EQ(co_await read(pool), Seqs{seq});
  });
}

TEST_F(OutboxStore, a_step_without_an_event_is_not_delivered) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    Writer writer(db_.dsn());
    writer.append_step("a", "X", "NULL");
    const auto announced = writer.append_step("a", "Y", "'T'");
    EXPECT_EQ(co_await read(pool), Seqs{announced});
  });
}

TEST_F(OutboxStore, lists_the_events_of_one_subject) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    Writer writer(db_.dsn());
    writer.append("a");
    writer.append("b");
    writer.append("a");
    const auto events = co_await events_of(pool, "a", 10);
    EXPECT_EQ(events.size(), 2u);
    EXPECT_EQ(events.at(0).seq, 1);
    EXPECT_EQ(events.at(1).seq, 3);
    EXPECT_EQ(events.at(1).type, "T");
    EXPECT_EQ(events.at(1).subject, "a");
    EXPECT_TRUE(events.at(1).data.is_object());
    EXPECT_EQ((co_await events_of(pool, "a", 1)).size(), 1u);
    EXPECT_EQ((co_await events_of(pool, "a", 10, 1)).at(0).seq, 3);
  });
}

TEST_F(OutboxStore, lists_the_steps_of_one_subject) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    Writer writer(db_.dsn());
    writer.run(
        "INSERT INTO event (subject, from_state, to_state, sub_state, node, fencing_token, why) VALUES "
        "('a', NULL, 'X', NULL, 'n', NULL, 'began'), ('b', NULL, 'X', NULL, 'n', NULL, 'began'), "
        "('a', 'X', 'Y', 's', 'n', 3, 'went on')");
    const auto steps = co_await history_of(pool, "a", 10);
    EXPECT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps.at(0).from_state, std::nullopt);
    EXPECT_EQ(steps.at(0).fencing_token, std::nullopt);
    EXPECT_EQ(steps.at(1).from_state, "X");
    EXPECT_EQ(steps.at(1).to_state, "Y");
    EXPECT_EQ(steps.at(1).sub_state, "s");
    EXPECT_EQ(steps.at(1).node, "n");
    EXPECT_EQ(steps.at(1).fencing_token, 3);
    EXPECT_EQ(steps.at(1).why, "went on");
    EXPECT_EQ((co_await history_of(pool, "a", 1)).size(), 1u);
    EXPECT_EQ((co_await history_of(pool, "a", 10, steps.at(0).seq)).at(0).to_state, "Y");
  });
}

// The rows lie in two months, so that two partitions have to be merged.
TEST_F(OutboxStore, steps_and_events_of_a_subject_stay_in_order_across_months) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    Writer writer(db_.dsn());
    for (const auto* month : {"0 months", "1 month", "0 months", "1 month"}) {
      writer.run(
          fmt::format("INSERT INTO event (at, subject, type, to_state, node, why, data) "
                      "VALUES (now() + interval '{}', 'a', 'T', 'X', 'n', 'test', '{{}}')",
                      month));
    }
    Seqs steps, events;
    for (const auto& step : co_await history_of(pool, "a", 10)) steps.push_back(step.seq);
    for (const auto& event : co_await events_of(pool, "a", 10)) events.push_back(event.seq);
    EXPECT_EQ(steps, (Seqs{1, 2, 3, 4}));
    EXPECT_EQ(events, (Seqs{1, 2, 3, 4}));
    EXPECT_EQ(co_await read(pool), (Seqs{1, 2, 3, 4}));
  });
}

TEST_F(OutboxStore, the_views_show_a_step_and_its_event_from_one_row) {
  Writer writer(db_.dsn());
  writer.append("only_event");
  writer.append_step("only_step", "X", "NULL");
  writer.append_step("both", "X", "'T'");
  EXPECT_EQ(db_.exec("SELECT string_agg(subject, ' ' ORDER BY seq) FROM history"), "only_step both");
  EXPECT_EQ(db_.exec("SELECT string_agg(subject, ' ' ORDER BY seq) FROM outbox"), "only_event both");
  EXPECT_EQ(db_.exec("SELECT count(*) FROM event"), "3");
}

TEST_F(OutboxStore, a_row_that_is_neither_a_whole_step_nor_a_whole_event_is_refused) {
  Writer writer(db_.dsn());
  for (const auto* row : {"subject) VALUES ('a')",                                          //
                          "subject, type) VALUES ('a', 'T')",                               //
                          "subject, data) VALUES ('a', '{}')",                              //
                          "subject, to_state, node) VALUES ('a', 'X', 'n')",                //
                          "subject, to_state, why) VALUES ('a', 'X', 'test')",              //
                          "subject, type, data, why) VALUES ('a', 'T', '{}', 'test')",      //
                          "subject, type, data, from_state) VALUES ('a', 'T', '{}', 'X')",  //
                          "subject, type, data, sub_state) VALUES ('a', 'T', '{}', 's')"}) {
    try {
      writer.run(fmt::format("INSERT INTO event ({}", row));
      ADD_FAILURE() << "accepted: " << row;
    } catch (const Exception& refused) {
      EXPECT_NE(refused.error().message.find("event_is_a_step_or_announced"), std::string::npos)
          << row << ": " << refused.error().message;
    }
  }
}

TEST_F(OutboxStore, rows_of_the_log_are_never_changed) {
  Writer writer(db_.dsn());
  writer.append("a");
  for (const auto* change : {"UPDATE event SET subject = 'b'", "DELETE FROM event", "TRUNCATE event"}) {
    try {
      writer.run(change);
      ADD_FAILURE() << "accepted: " << change;
    } catch (const Exception& refused) {
      EXPECT_NE(refused.error().message.find("the log is append-only"), std::string::npos) << refused.error().message;
    }
  }
}

}  // namespace
}  // namespace fencepost::outbox
