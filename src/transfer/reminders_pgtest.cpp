// What was skipped because another session had locked it is looked at when the lock is gone.
#include "tests/support/eventually.hpp"
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

class Reminders : public EconomyTest {
 protected:
  int reminders() { return admin.value<int>("SELECT count(*) FROM economy.transfer_reminders"); }

  Session a{db.dsn(), "a"};
  Session b{db.dsn(), "b"};
};

// A credit finds the row of a waiting transfer locked by a transaction that then changes nothing.
TEST_F(Reminders, a_credit_is_not_missed_behind_a_lock_that_is_rolled_back) {
  mint(3, 1'000);
  const auto id = insert(1, 2, 50);
  admin.must("UPDATE economy.transfer_work SET due_at = '9000-01-01', next_attempt_at = '9000-01-01'");
  a.must("BEGIN");
  a.must(kCancel, pg::Params::of(id));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(column(transfer_now({{3, 1, 50}}), "woken"), Texts{"1"}) << "the nodes are told";
  }
  EXPECT_EQ(reminders(), 1) << "one is enough";
  for (int i = 0; i < 3; ++i) {
    const auto done = b.must(kProcess);
    EXPECT_TRUE(done.one().get<bool>("busy")) << "ask again soon: it is still locked";
    EXPECT_FALSE(done.one().get<bool>("lane_busy"));
    EXPECT_EQ(done.one().get<int>("claimed"), 0);
  }
  a.must("ROLLBACK");
  const auto done = b.must(kProcess);
  EXPECT_EQ(done.one().get<int>("approved"), 1);
  EXPECT_FALSE(done.one().get<bool>("busy"));
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(reminders(), 0);
  EXPECT_EQ(audit(), "");
}

TEST_F(Reminders, a_reminder_of_a_transfer_that_has_ended_is_forgotten) {
  mint(3, 1'000);
  const auto id = insert(1, 2, 50);
  a.must("BEGIN");
  a.must(kCancel, pg::Params::of(id));
  transfer_now({{3, 1, 50}});
  a.must("COMMIT");
  EXPECT_EQ(process(), 0);
  EXPECT_EQ(reminders(), 0);
}

// A transfer is inserted by the old settings, and its transaction ends after the new ones are there.
TEST_F(Reminders, new_settings_reach_a_transfer_that_was_just_being_inserted) {
  settings(R"({"daily_limit": 10})");
  mint(1, 100);
  a.must("BEGIN");
  const auto id = Uuid::parse(a.must(kInsert, pg::Params::of(kGuild, 1, 2, 50)).one().get<std::string>(0)).value();
  change_settings(R"({"daily_limit": 100})");
  process();
  a.must("COMMIT");
  EXPECT_TRUE(test::eventually([&] { return process() == 1; }));
  EXPECT_EQ(state(id), "completed");
  EXPECT_TRUE(test::eventually([&] {
    process();
    return reminders() == 0;
  }));
}

// An operator, or a program, changes settings many times while a long transaction is open somewhere.
TEST_F(Reminders, those_of_a_guild_are_followed_at_once) {
  mint(1, 100);
  change_settings(R"({"daily_limit": 10})");
  const auto id = insert(1, 2, 50);
  a.must("BEGIN");
  a.must("SELECT pg_current_xact_id()");
  for (int limit = 11; limit <= 30; ++limit) change_settings(fmt::format(R"({{"daily_limit": {}}})", limit));
  const auto reminders = [&] { return admin.value<int>("SELECT count(*) FROM economy.transfer_reminders"); };
  process();
  EXPECT_EQ(reminders(), 21);
  EXPECT_EQ(admin.value<int>("SELECT count(DISTINCT begun_before) FROM economy.transfer_reminders"), 1);
  a.must("COMMIT");
  tamper("UPDATE economy.transfer_work SET due_at = '9000-01-01', failed_on = 4");
  db.exec(
      "CREATE TABLE written (at xid8); GRANT INSERT ON written TO PUBLIC; "
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN INSERT INTO public.written VALUES (pg_current_xact_id()); RETURN NULL; END'; "
      "CREATE TRIGGER note AFTER UPDATE ON economy.transfer_work FOR EACH STATEMENT EXECUTE FUNCTION note()");
  EXPECT_TRUE(test::eventually([&] {
    admin.must(kProcess);
    return reminders() == 0;
  }));
  EXPECT_EQ(state(id), "checking 0");
  EXPECT_EQ(db.exec("SELECT count(*) FROM written"), "1") << "made due once";
}

TEST_F(Reminders, new_settings_make_ten_thousand_transfers_due_at_a_time) {
  settings(R"({"daily_limit": 0})");
  mint(1, 1'000);
  const auto last = insert(1, 2, 5);
  tamper(R"(
    INSERT INTO economy.pending_transfers (transfer_id, guild_id, initiator_id, target_id, amount, status, expires_at)
    SELECT gen_random_uuid(), 7, 1 + n % 3, 9, 1000000, 'checking', '9000-01-01' FROM generate_series(1, 20500) AS n;
    INSERT INTO economy.transfer_work (transfer_id, seq, guild_id, initiator_id, amount, lane, approved, failed_on,
                                       due_at, next_attempt_at, expires_at)
    SELECT transfer_id, seq, guild_id, initiator_id, amount, economy._lane(7), false, 4, '9000-01-01', '9000-01-01',
           '9000-01-01' FROM economy.pending_transfers WHERE amount = 1000000;
    UPDATE economy.transfer_work SET initiator_id = 4 WHERE amount = 5)");
  const auto due = [&] {
    return admin.value<int>("SELECT count(*) FROM economy.transfer_work WHERE due_at <= clock_timestamp()");
  };
  change_settings(R"({"daily_limit": 1000})");
  EXPECT_EQ(due(), 10'000);
  for (const int expected : {20'000, 20'501}) {
    admin.must("DELETE FROM economy.transfer_reminders WHERE after_seq IS NULL");
    admin.must("SELECT economy._follow_reminders(clock_timestamp())");
    EXPECT_EQ(due(), expected);
  }
  EXPECT_EQ(reminders(), 0);
  EXPECT_EQ(state(last), "checking 0");
}

}  // namespace
}  // namespace fencepost::transfer
