// The log of history and events on real nodes: its months, and what a client sees when old ones are gone.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fencepost.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr auto kThisMonth = "'event_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')";
constexpr auto kNote = "Earlier steps are gone";

std::string tx_history(TxCluster& cluster, const std::string& id) {
  const auto done = fencepost({"tx", "history", id},
                              {"FENCEPOST_URL=" + cluster.node(0).url(""), "FENCEPOST_API_KEY=" + cluster.key()});
  EXPECT_EQ(done.status.code, 0) << done.err;
  return done.out;
}

TEST(event_log, history_and_events_say_when_the_month_of_the_creation_is_gone) {
  TxCluster cluster;
  const auto id = cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  for (const auto* log : {"history", "events"}) {
    const auto answer = cluster.get(0, fmt::format("/api/v1/tx/{}/{}", id, log)).json();
    EXPECT_EQ(answer.at("truncated"), false) << log;
    EXPECT_GE(answer.at("items").as_array().size(), 3U) << log;
  }
  EXPECT_THAT(tx_history(cluster, id), Not(HasSubstr(kNote)));

  cluster.sql(fmt::format("DO $$ BEGIN EXECUTE 'DROP TABLE ' || {}; END $$", kThisMonth));
  for (const auto* log : {"history", "events"}) {
    const auto answer = cluster.get(0, fmt::format("/api/v1/tx/{}/{}", id, log)).json();
    EXPECT_EQ(answer.at("truncated"), true) << log;
    EXPECT_EQ(answer.at("items").as_array().size(), 0U) << log;
  }
  EXPECT_THAT(tx_history(cluster, id), HasSubstr(kNote));
}

TEST(event_log, a_node_that_starts_after_a_long_pause_adds_the_months_before_it_writes) {
  TxCluster cluster;
  cluster.node(0).stop();
  cluster.sql(
      "DO $$ DECLARE month regclass; BEGIN FOR month IN SELECT inhrelid FROM pg_inherits "
      "WHERE inhparent = 'event'::regclass LOOP EXECUTE 'DROP TABLE ' || month; END LOOP; END $$");
  cluster.node(0).start();
  cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'event'::regclass"), "4");
  EXPECT_EQ(cluster.node(0).metric("event_partitions_ahead"), 3);
}

TEST(event_log, migrate_adds_the_coming_months) {
  TestDatabase db(Template::kMigrated);
  db.exec(
      "DO $$ BEGIN EXECUTE 'DROP TABLE event_' || to_char(now() AT TIME ZONE 'UTC' "
      "+ interval '2 months', 'YYYY_MM'); END $$");
  const auto done = fencepost({"migrate", "--dsn", db.dsn()});
  EXPECT_EQ(done.status.code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(db.exec("SELECT count(*) FROM pg_inherits WHERE inhparent = 'event'::regclass"), "4");
}

}  // namespace
}  // namespace fencepost::test
