#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "outbox/delivery/consumer_store.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;

class ConsumerStore : public ::testing::Test {
 protected:
  // Lets the claims of all consumers expire, as if their node had died.
  void expire() { db_.exec("UPDATE event_consumer SET claimed_until = clock_timestamp() - interval '1 ms'"); }
  std::string position() { return db_.exec("SELECT position FROM event_consumer WHERE consumer = 'w/1'"); }

  test::TestDatabase db_{test::Template::kMigrated};
};

TEST_F(ConsumerStore, nodes_take_different_consumers) {
  test::with_pool(db_.dsn(), {}, [](pg::Pool& pool) -> awaitable<> {
    for (const auto* name : {"w/1", "w/2", "w/3", "n/1"}) co_await add_consumer(pool, name, 0);
    const auto a = co_await take_claims(pool, "a", "w", 2, 6s);
    const auto b = co_await take_claims(pool, "b", "w", 2, 6s);
    EXPECT_EQ(a.size(), 2);
    EXPECT_EQ(b.size(), 1);
    const auto none = co_await take_claims(pool, "c", "w", 2, 6s);
    EXPECT_TRUE(none.empty());
  });
}

TEST_F(ConsumerStore, an_expired_claim_is_taken_with_a_higher_token_and_the_old_owner_writes_nothing) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    co_await add_consumer(pool, "w/1", 5);
    const auto old = (co_await take_claims(pool, "a", "w", 1, 6s)).at(0);
    EXPECT_EQ(old.position, 5);
    EXPECT_TRUE(co_await advance(pool, old.claim, 7, 6s));
    expire();
    EXPECT_FALSE(co_await advance(pool, old.claim, 8, 6s)) << "an expired claim writes nothing, taken or not";
    const auto taken = (co_await take_claims(pool, "b", "w", 1, 6s)).at(0);
    EXPECT_EQ(taken.claim.token, old.claim.token + 1);
    EXPECT_EQ(taken.position, 7);
    EXPECT_FALSE(co_await advance(pool, old.claim, 8, 6s));
    co_await renew_claims(pool, "a", {"w"}, {{.claim = old.claim, .position = 99}}, 6s);
    co_await release_claims(pool, "a", {{.claim = old.claim, .position = 99}}, false);
    EXPECT_EQ(position(), "7");
    EXPECT_TRUE(co_await advance(pool, taken.claim, 9, 6s));
  });
}

TEST_F(ConsumerStore, a_renewal_stores_what_was_skipped_and_why_a_delivery_failed) {
  test::with_pool(db_.dsn(), {}, [](pg::Pool& pool) -> awaitable<> {
    co_await add_consumer(pool, "w/1", 5);
    const auto taken = (co_await take_claims(pool, "a", "w", 1, 6s)).at(0);
    auto seen = co_await renew_claims(pool, "a", {"w"}, {{taken.claim, 8, "refused"}}, 6s);
    EXPECT_EQ(seen.consumers.at(0).position, 8);
    EXPECT_EQ(seen.consumers.at(0).last_error, "refused");
    EXPECT_TRUE(seen.consumers.at(0).failing_since);
    EXPECT_EQ(seen.worker_kinds, std::vector<std::string>{"w"});
    seen = co_await renew_claims(pool, "a", {"w"}, {{taken.claim, 6, std::nullopt}}, 6s);
    EXPECT_EQ(seen.consumers.at(0).position, 8) << "a position never moves back";
    EXPECT_FALSE(seen.consumers.at(0).failing_since);
    EXPECT_FALSE(co_await advance(pool, taken.claim, 7, 6s));
  });
}

TEST_F(ConsumerStore, a_released_claim_is_free_at_once_and_the_node_no_longer_counts) {
  test::with_pool(db_.dsn(), {}, [](pg::Pool& pool) -> awaitable<> {
    co_await add_consumer(pool, "w/1", 0);
    const auto taken = (co_await take_claims(pool, "a", "w", 1, 6s)).at(0);
    co_await renew_claims(pool, "a", {"w"}, {{.claim = taken.claim}}, 6s);
    co_await release_claims(pool, "a", {{.claim = taken.claim, .position = 3}}, true);
    const auto next = (co_await take_claims(pool, "b", "w", 1, 6s)).at(0);
    EXPECT_EQ(next.position, 3);
    const auto seen = co_await renew_claims(pool, "b", {"w", "n"}, {}, 6s);
    EXPECT_EQ(seen.worker_kinds, (std::vector<std::string>{"w", "n"}));
  });
}

TEST_F(ConsumerStore, a_paused_consumer_is_not_taken) {
  test::with_pool(db_.dsn(), {}, [](pg::Pool& pool) -> awaitable<> {
    co_await add_consumer(pool, "w/1", 0);
    co_await pool.execute(sql::kSetConsumerActive, "w/1", false);
    const auto none = co_await take_claims(pool, "a", "w", 1, 6s);
    EXPECT_TRUE(none.empty());
  });
}

// An owner whose claim has just expired stores a position while another node takes over: in every order exactly one of
// them wins, and the new owner starts at the position that was stored.
TEST_F(ConsumerStore, a_late_write_and_a_takeover_never_both_succeed) {
  using namespace interleaving;  // NOLINT(google-build-using-namespace)
  Theatre theatre(db_.dsn());
  Session owner(db_.dsn(), "owner");
  Session taker(db_.dsn(), "taker");
  for (const bool expired : {true, false}) {
    for (const auto& order : all_orders({2, 2})) {
      db_.exec("DELETE FROM event_consumer");
      db_.exec(
          fmt::format("INSERT INTO event_consumer (consumer, position, owner_node, claim_token, claimed_until) "
                      "VALUES ('w/1', 5, 'a', 1, clock_timestamp() {} interval '1 minute')",
                      expired ? "-" : "+"));
      std::int64_t written = -1;
      std::int64_t taken = -1;
      std::int64_t start = -1;
      pg::Batch advance_batch;
      advance_batch.add(sql::kAdvance, "w/1", "a", 1, 9, 6000);
      pg::Batch take_batch;
      take_batch.add(sql::kTakeClaims, "b", "w", 1, 6000);
      theatre.play({{owner, script_of(advance_batch, [&](const Answer& a) { written = a.rows.affected(); })},
                    {taker, script_of(take_batch,
                                      [&](const Answer& a) {
                                        taken = a.rows.affected();
                                        if (taken == 1) start = a.rows[0].get<std::int64_t>("position");
                                      })}},
                   order);
      EXPECT_EQ(written, expired ? 0 : 1) << theatre.trace();
      EXPECT_EQ(taken, expired ? 1 : 0) << theatre.trace();
      if (taken == 1) EXPECT_EQ(start, 5) << theatre.trace();
    }
  }
}

// A sink's own write locks the consumer's row through its claim, so a takeover leaves the row alone until it commits.
TEST_F(ConsumerStore, a_takeover_leaves_out_a_consumer_whose_owner_is_writing) {
  using namespace interleaving;  // NOLINT(google-build-using-namespace)
  Session owner(db_.dsn(), "owner");
  Session taker(db_.dsn(), "taker");
  db_.exec(
      "INSERT INTO event_consumer (consumer, position, owner_node, claim_token, claimed_until) VALUES "
      "('w/1', 5, 'a', 1, clock_timestamp() + interval '200 ms')");
  owner.must("BEGIN");
  const auto held =
      owner.must("WITH " FENCEPOST_HOLDS_CLAIM " SELECT * FROM claim", pg::Params::of("w/1", "a", std::int64_t{1}));
  ASSERT_EQ(held.size(), 1);
  taker.must("SELECT pg_sleep(0.25)");  // by the database's clock: now the claim has expired
  const auto take = pg::Params::of("b", "w", 1, 6000);
  EXPECT_EQ(taker.must(sql::kTakeClaims.sql, take).size(), 0);
  owner.must("COMMIT");
  EXPECT_EQ(taker.must(sql::kTakeClaims.sql, take).size(), 1);
  EXPECT_EQ(
      owner.must("WITH " FENCEPOST_HOLDS_CLAIM " SELECT * FROM claim", pg::Params::of("w/1", "a", std::int64_t{1}))
          .size(),
      0);
}

TEST_F(ConsumerStore, moving_the_position_is_a_hot_update) {
  test::with_pool(db_.dsn(), {}, [](pg::Pool& pool) -> awaitable<> {
    co_await add_consumer(pool, "w/1", 0);
    const auto taken = (co_await take_claims(pool, "a", "w", 1, 6s)).at(0);
    for (int i = 1; i <= 50; ++i) co_await advance(pool, taken.claim, i, 6s);
  });
  db_.exec("SELECT pg_stat_force_next_flush()");
  const auto hot = [this] {
    return db_.exec(
        "SELECT n_tup_upd >= 51 AND n_tup_hot_upd = n_tup_upd FROM pg_stat_user_tables "
        "WHERE relname = 'event_consumer'");
  };
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (hot() != "t" && std::chrono::steady_clock::now() < deadline) db_.exec("SELECT pg_sleep(0.1)");
  EXPECT_EQ(hot(), "t");
}

}  // namespace
}  // namespace fencepost::outbox
