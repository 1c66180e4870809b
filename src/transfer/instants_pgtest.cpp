// The exact instants of the rules, by a clock that the test owns.
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

class Instants : public EconomyTest {
 protected:
  void SetUp() override {
    EconomyTest::SetUp();
    db.exec(R"(
      CREATE TABLE public.test_clock (at timestamptz NOT NULL);
      INSERT INTO public.test_clock VALUES ('2030-05-06 12:00:00+00');
      CREATE OR REPLACE FUNCTION economy._clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
        $$ SELECT at FROM public.test_clock $$)");
    mint(1, 1'000);
  }
  void at(const std::string& time) {
    admin.must("UPDATE public.test_clock SET at = $1::timestamptz", pg::Params::of(time));
  }
  std::string sync_outcome(std::int64_t amount) { return column(transfer_now({{1, 2, amount}}), "outcome").at(0); }
  std::string due(const Uuid& id) {
    return admin.value<std::string>(
        "SELECT to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') FROM economy.transfer_work WHERE "
        "transfer_id = $1",
        pg::Params::of(id));
  }
};

TEST_F(Instants, a_cooldown_ends_at_its_very_microsecond) {
  settings(R"({"cooldown_seconds": 300})");
  ASSERT_EQ(sync_outcome(1), "completed");
  const auto id = insert(1, 2, 1);
  EXPECT_EQ(due(id), "2030-05-06 12:05:00.000000");
  at("2030-05-06 12:04:59.999999+00");
  EXPECT_EQ(sync_outcome(1), "cooldown");
  EXPECT_EQ(process(), 0);
  EXPECT_EQ(state(id), "checking 0");
  at("2030-05-06 12:05:00+00");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(id), "completed");
  EXPECT_EQ(sync_outcome(1), "cooldown") << "the next cooldown begins";
}

TEST_F(Instants, a_day_ends_at_midnight_utc) {
  settings(R"({"daily_limit": 100})");
  at("2030-05-06 00:00:00+00");
  ASSERT_EQ(sync_outcome(100), "completed");
  const auto id = insert(1, 2, 100);
  EXPECT_EQ(due(id), "2030-05-07 00:00:00.000000");
  admin.must("SET TimeZone = 'Pacific/Kiritimati'");
  at("2030-05-06 23:59:59.999999+00");
  EXPECT_EQ(sync_outcome(1), "daily_limit");
  EXPECT_EQ(process(), 0);
  at("2030-05-07 00:00:00+00");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(sync_outcome(1), "daily_limit") << "the new day is used up";
}

TEST_F(Instants, a_transfer_may_be_approved_at_its_expiry_and_not_after_it) {
  const auto expiring = [&] {
    return admin.value<Uuid>(
        "INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount, expires_at) "
        "VALUES (7, 5, 2, 10, '2030-05-06 12:00:05+00') RETURNING transfer_id");
  };
  const auto first = expiring();
  const auto second = expiring();
  at("2030-05-06 12:00:05+00");
  EXPECT_EQ(expire(), 0);
  mint(5, 10);
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(first), "completed");
  at("2030-05-06 12:00:05.000001+00");
  mint(5, 10);
  process();
  EXPECT_EQ(state(second), "rejected transfer_checks_expired");
  EXPECT_EQ(expire(), 0);
  EXPECT_EQ(audit(), "");
}

TEST_F(Instants, a_transfer_that_waits_for_a_known_time_is_looked_at_then_and_counts_no_retry) {
  settings(R"({"cooldown_seconds": 3600, "daily_limit": 500, "max_retries": 2})");
  ASSERT_EQ(sync_outcome(10), "completed");
  const auto cooling = insert(1, 2, 10);
  const auto too_much = admin.value<Uuid>("SELECT economy.fn_create_pending_transfer(7, 1, 2, 501, '{}', 48)");
  EXPECT_EQ(checks(too_much), "100");
  for (int minute = 1; minute < 60; ++minute) {
    at(fmt::format("2030-05-06 12:{:02}:00+00", minute));
    EXPECT_EQ(admin.must(kProcess).one().get<int>("claimed"), 0) << minute;
  }
  at("2030-05-06 13:00:00+00");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(cooling), "completed");
  for (const auto* midnight : {"2030-05-07 00:00:00+00", "2030-05-08 00:00:00+00"}) {
    at(midnight);
    EXPECT_EQ(admin.must(kProcess).one().get<int>("waiting"), 1);
    EXPECT_EQ(state(too_much), "checking 0");
  }
  settings(R"({"daily_limit": 501})");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(too_much), "completed");
}

// Many transfers of a payer that wait for the cooldown: the first 16 are looked at when it ends, the others behind them
// are parked.
class Cooldown : public Instants {
 protected:
  void SetUp() override {
    Instants::SetUp();
    settings(R"({"cooldown_seconds": 60})");
    ASSERT_EQ(sync_outcome(1), "completed");
  }
  void wait(int n) {
    for (int i = 0; i < n; ++i) ids.push_back(insert(1, 2, 1));
  }
  void at_minute(int minute) { at(fmt::format("2030-05-06 {}:{:02}:00+00", 12 + minute / 60, minute % 60)); }
  // Looks until nothing is due; how many transfers were looked at.
  int look() {
    int looked = 0;
    for (;;) {
      const auto done = admin.must(kProcess);
      looked += done.one().get<int>("waiting") + done.one().get<int>("approved") + done.one().get<int>("denied");
      if (!done.one().get<bool>("more")) return looked;
    }
  }
  std::string completed() {
    return admin.value<std::string>(
        "SELECT coalesce(string_agg(seq::text, ' ' ORDER BY updated_at, seq), '') FROM economy.pending_transfers "
        "WHERE status = 'completed'");
  }
  int parked() { return admin.value<int>("SELECT count(*) FROM economy.transfer_work WHERE parked"); }
  void end_first(int n, const std::string& how) {
    for (int i = 0; i < n; ++i) admin.must(how, pg::Params::of(ids.at(ended++)));
  }

  std::vector<Uuid> ids;
  std::size_t ended = 0;
};

TEST_F(Cooldown, that_ends_is_tried_by_sixteen_of_many_and_passed_by_one_in_order) {
  constexpr int kWaiting = 100;
  wait(kWaiting);
  EXPECT_EQ(parked(), kWaiting - 16);
  std::string expected;
  for (int minute = 1; minute <= kWaiting; ++minute) {
    SCOPED_TRACE(minute);
    at_minute(minute);
    const int looked = look();
    // Those that are parked are looked at once an hour.
    if (minute < 60) EXPECT_LE(looked, 16);
    EXPECT_LE(looked, kWaiting);
    expected += (expected.empty() ? "" : " ") + std::to_string(minute);
    ASSERT_EQ(completed(), expected);
  }
  EXPECT_EQ(audit(), "");
}

TEST_F(Cooldown, is_tried_by_those_behind_when_the_first_are_cancelled_or_expire) {
  wait(50);
  end_first(16, "SELECT economy.fn_cancel_transfer($1)");
  EXPECT_EQ(due(ids[16]), "2030-05-06 12:01:00.000000");
  tamper("UPDATE economy.transfer_work SET expires_at = '2030-05-06 12:00:30+00' WHERE seq BETWEEN 17 AND 32");
  at("2030-05-06 12:00:31+00");
  EXPECT_EQ(expire(), 16);
  at_minute(1);
  EXPECT_EQ(look(), 16);
  EXPECT_EQ(completed(), "33");
  EXPECT_EQ(audit(), "");
}

// They fail on the balance when the cooldown is over, and one behind them passes at once.
TEST_F(Cooldown, is_tried_by_those_behind_when_the_first_lack_money) {
  for (int i = 0; i < 16; ++i) ids.push_back(insert(1, 2, 500));
  wait(10);
  burn(1, 900);
  at_minute(1);
  EXPECT_EQ(look(), 26);
  EXPECT_EQ(completed(), "17");
}

TEST_F(Cooldown, lets_a_transfer_behind_a_lock_move_up_later) {
  wait(17);
  Session psql(db.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("SELECT FROM economy.transfer_work WHERE transfer_id = $1 FOR UPDATE", pg::Params::of(ids[16]));
  end_first(16, "SELECT economy.fn_cancel_transfer($1)");
  psql.must("ROLLBACK");
  look();
  EXPECT_EQ(due(ids[16]), "2030-05-06 12:01:00.000000");
}

TEST_F(Cooldown, of_another_length_reaches_parked_transfers) {
  wait(30);
  settings(R"({"cooldown_seconds": 0})");
  look();
  EXPECT_EQ(parked(), 0);
  EXPECT_EQ(admin.value<int>("SELECT count(*) FROM economy.pending_transfers WHERE status = 'completed'"), 30);
}

TEST_F(Instants, retries_of_a_request_go_before_those_of_the_guild) {
  settings(R"({"max_retries": 1})");
  const auto waiting = [&](const std::string& retries) {
    return admin.value<Uuid>(fmt::format(
        "SELECT economy.fn_create_pending_transfer(7, 5, 2, 10, '{{}}', 48, p_max_retries => {})", retries));
  };
  const auto usual = waiting("NULL");
  const auto three = waiting("3");
  const auto for_ever = waiting("-1");
  EXPECT_EQ(state(waiting("0")), "rejected transfer_checks_failed");
  for (int minute = 1; minute < 60; ++minute) {
    at(fmt::format("2030-05-06 12:{:02}:00+00", minute));
    process();
  }
  EXPECT_EQ(state(usual), "rejected transfer_checks_failed");
  EXPECT_EQ(state(three), "rejected transfer_checks_failed");
  EXPECT_GT(admin.value<int>("SELECT retry_count FROM economy.pending_transfers WHERE transfer_id = $1",
                             pg::Params::of(for_ever)),
            10);
  settings(R"({"max_retries": null})");
  const auto of_the_guild = waiting("NULL");
  for (int hour = 13; hour < 24; ++hour) {
    for (int minute = 0; minute < 60; minute += 5) {
      at(fmt::format("2030-05-06 {}:{:02}:00+00", hour, minute));
      process();
    }
  }
  EXPECT_TRUE(state(of_the_guild).starts_with("checking "));
  at("2030-05-08 12:00:01+00");
  expire();
  EXPECT_EQ(state(for_ever), "rejected transfer_checks_expired");
  EXPECT_EQ(admin.ask("SELECT economy.fn_create_pending_transfer(7, 5, 2, 10, p_max_retries => 1001)").sqlstate,
            "22023");
  EXPECT_EQ(audit(), "");
}

}  // namespace
}  // namespace fencepost::transfer
