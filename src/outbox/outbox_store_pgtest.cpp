#include <algorithm>
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "outbox/outbox_store.hpp"
#include "pg/connection.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::outbox {
namespace {

// A session that holds a transaction open between calls.
class Writer {
 public:
  explicit Writer(const std::string& dsn) : connection_(PQconnectdb(dsn.c_str())) {}

  // The first column of the first row, or "".
  std::string run(const std::string& sql) {
    const pg::ResultSet rows(PQexec(connection_.get(), sql.c_str()));
    const std::string failure = PQerrorMessage(connection_.get());
    if (!failure.empty()) throw Exception(internal("test_session", failure));
    return rows.empty() ? "" : rows[0].get<std::string>(0);
  }
  // Opens a transaction and assigns its id, as in a transaction that is waiting for a lock.
  void begin() { run("BEGIN; SELECT pg_current_xact_id()"); }
  std::int64_t append(const std::string& subject) {
    return std::stoll(run(fmt::format(
        "INSERT INTO outbox_event (type, subject, data) VALUES ('T', '{}', '{{}}') RETURNING seq", subject)));
  }

 private:
  pg::PgConn connection_;
};

// The settled seq depends on every transaction of the server, so these tests run on a server of their own.
struct OwnServer {
  OwnServer() { ::unsetenv("FENCEPOST_TEST_CLUSTER"); }
};

class OutboxStore : public ::testing::Test {
 protected:
  // The events that a reader at position `after_` gets now.
  awaitable<std::vector<std::int64_t>> read(pg::Pool& pool, std::size_t limit = 100) {
    const auto settled = co_await settled_.advance(pool);
    const auto events = co_await events_between(pool, after_, settled, limit);
    std::vector<std::int64_t> out;
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
    EXPECT_EQ(db_.exec("SELECT seq FROM outbox_event WHERE xid < pg_snapshot_xmin(pg_current_snapshot())"), "2");
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
  EXPECT_EQ(db_.exec("SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute "
                     "WHERE attrelid = 'outbox_event'::regclass AND attname IN ('xid', 'seq')"),
            "xid seq");
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

TEST_F(OutboxStore, lists_the_events_and_steps_of_one_subject) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    Writer writer(db_.dsn());
    writer.append("a");
    writer.append("b");
    writer.append("a");
    const auto events = co_await events_of(pool, "a", 10);
    EXPECT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].seq, 1);
    EXPECT_EQ(events[1].seq, 3);
    EXPECT_EQ(events[1].type, "T");
    EXPECT_EQ(events[1].subject, "a");
    EXPECT_TRUE(events[1].data.is_object());

    const auto id = Uuid::parse("01900000-0000-7000-8000-000000000001").value();
    writer.run(
        fmt::format("INSERT INTO step_history (subject_id, from_state, to_state, sub_state, node, fencing_token, why) "
                    "VALUES ('{0}', NULL, 'X', NULL, 'n', NULL, 'began'), ('{0}', 'X', 'Y', 's', 'n', 3, 'went on')",
                    id.to_string()));
    const auto steps = co_await history_of(pool, id, 10);
    EXPECT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].from_state, std::nullopt);
    EXPECT_EQ(steps[0].fencing_token, std::nullopt);
    EXPECT_EQ(steps[1].from_state, "X");
    EXPECT_EQ(steps[1].to_state, "Y");
    EXPECT_EQ(steps[1].sub_state, "s");
    EXPECT_EQ(steps[1].fencing_token, 3);
    EXPECT_EQ(steps[1].why, "went on");
    EXPECT_EQ((co_await history_of(pool, id, 1)).size(), 1u);
  });
}

}  // namespace
}  // namespace fencepost::outbox
