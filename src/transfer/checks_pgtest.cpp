// The checks of a transfer: which transfers pass, which wait, and what is announced.
#include <gmock/gmock.h>

#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

using boost::json::object;
using boost::json::value;

class Checks : public EconomyTest {
 protected:
  // Of one transfer, each with all of its keys.
  static std::vector<object> events(const Uuid& id, const Texts& rest) {
    std::vector<object> out;
    for (const auto& each : rest) {
      const auto text = fmt::format(R"({{"transfer_id": "{}", {}}})", id.to_string(), each);
      out.push_back(boost::json::parse(text).as_object());
    }
    return out;
  }
  static std::vector<value> fields(const object& event, const Texts& names) {
    std::vector<value> out;
    for (const auto& name : names) out.push_back(event.at(name));
    return out;
  }

  Ear ear{db.dsn(), "economy_events"};
};

TEST_F(Checks, run_on_insert_and_approve_transfers_that_pass) {
  mint(1, 100);
  const auto id = insert(1, 2, 100);
  EXPECT_EQ(state(id), "approved");
  EXPECT_EQ(checks(id), "111");
  EXPECT_EQ(account(1), "100/100");
  EXPECT_EQ(account(2), "-") << "nothing has moved yet";
  EXPECT_EQ(outbox(id), Texts{"TransferApproved"});
}

TEST_F(Checks, are_greedy_in_order_and_a_failed_transfer_reserves_nothing) {
  mint(1, 100);
  const auto rows = create({{1, 2, 150}, {1, 2, 40}, {1, 2, 50}});
  EXPECT_EQ(column(rows, "outcome"), (Texts{"created", "created", "created"}));
  EXPECT_EQ(column(rows, "status"), (Texts{"checking", "approved", "approved"}));
  EXPECT_EQ(account(1), "100/90");
  EXPECT_EQ(process(), 2);
  EXPECT_EQ(account(1), "10/0");
  EXPECT_EQ(account(2), "90/0");
  EXPECT_EQ(audit(), "");
}

TEST_F(Checks, never_approve_the_same_money_twice) {
  mint(1, 100);
  Texts states;
  for (int i = 0; i < 5; ++i) states.push_back(state(insert(1, 2, 100)));
  EXPECT_EQ(states, (Texts{"approved", "checking 0", "checking 0", "checking 0", "checking 0"}));
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(account(2), "100/0");
}

TEST_F(Checks, of_a_thousand_in_one_insert_are_made_as_a_set) {
  mint(1, 500);
  mint(2, 10'000);
  const auto sql =
      "INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount) "
      "SELECT 7, 1 + n % 2, 3, CASE WHEN n % 10 = 0 THEN 10000 ELSE 10 END FROM generate_series(1, 1000) AS n";
  const auto written = [&] {
    return admin.value<std::int64_t>("SELECT n_tup_upd FROM pg_stat_xact_user_tables WHERE relname = 'accounts'");
  };
  admin.must("BEGIN");
  const auto before = written();
  EXPECT_EQ(admin.must(sql).affected(), 1000);
  EXPECT_EQ(written() - before, 2) << "one update for each payer";
  admin.must("COMMIT");
  // Member 1 has the even places, of which every fifth asks for 10,000.
  EXPECT_EQ(account(1), "500/500");
  EXPECT_EQ(account(2), "10000/5000");
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.pending_transfers WHERE status = 'approved'"), 550);
  EXPECT_EQ(process(), 550);
  EXPECT_EQ(account(3), "5500/0");
  EXPECT_EQ(audit(), "");
}

// An insert works even if another schema is first in the session's search_path.
TEST_F(Checks, of_an_insert_by_hand_do_not_depend_on_the_search_path) {
  mint(1, 100);
  admin.must("SET search_path = economy");
  admin.must(
      "INSERT INTO pending_transfers (guild_id, initiator_id, target_id, amount) VALUES (7, 1, 2, 30), (7, 1, 2, 90)");
  admin.must("SET search_path = public");
  EXPECT_EQ(account(1), "100/30");
  EXPECT_EQ(process(), 1);
  EXPECT_TRUE(
      admin.value<bool>("SELECT min(expires_at) BETWEEN now() + interval '23 hours' AND now() + interval '24 hours' "
                        "FROM economy.pending_transfers"));
}

TEST_F(Checks, let_a_payer_without_an_account_wait) {
  const auto id = insert(1, 2, 5);
  EXPECT_EQ(state(id), "checking 0");
  EXPECT_EQ(checks(id), "011");
  mint(1, 5);
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(id), "completed");
}

TEST_F(Checks, start_the_cooldown_at_approval_and_a_failed_one_starts_none) {
  settings(R"({"cooldown_seconds": 300})");
  mint(1, 100);
  const auto failed = insert(1, 2, 101);
  EXPECT_EQ(checks(failed), "011");
  const auto first = insert(1, 2, 10);
  EXPECT_EQ(state(first), "approved") << "the failed transfer started no cooldown";
  const auto second = insert(1, 2, 10);
  EXPECT_EQ(checks(second), "101");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(second), "checking 0");
  pass("301 s");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(second), "completed");
}

TEST_F(Checks, pass_one_of_a_members_set_when_there_is_a_cooldown) {
  settings(R"({"cooldown_seconds": 300})");
  mint(1, 100);
  mint(2, 100);
  const auto rows = create({{1, 3, 200}, {1, 3, 10}, {1, 3, 10}, {2, 3, 10}});
  EXPECT_EQ(column(rows, "status"), (Texts{"checking", "approved", "checking", "approved"}));
}

TEST_F(Checks, count_what_was_approved_towards_the_days_limit) {
  settings(R"({"daily_limit": 500})");
  mint(1, 10'000);
  const auto rows = create({{1, 2, 300}, {1, 2, 201}, {1, 2, 200}, {1, 2, 1}});
  EXPECT_EQ(column(rows, "status"), (Texts{"approved", "checking", "approved", "checking"}));
  EXPECT_EQ(checks(rows[3].get<Uuid>("transfer_id")), "110");
  process();
  EXPECT_EQ(checks(insert(1, 2, 1)), "110") << "completing a transfer frees none of the daily limit";
  // The transfer happened yesterday.
  tamper("UPDATE economy.accounts SET day = day - 1");
  EXPECT_EQ(state(insert(1, 2, 500)), "approved");
}

TEST_F(Checks, use_the_utc_day_in_every_session_time_zone) {
  settings(R"({"daily_limit": 500})");
  mint(1, 10'000);
  for (const auto* zone : {"Pacific/Kiritimati", "Etc/GMT+12", "UTC"}) {
    admin.must(fmt::format("SET TimeZone = '{}'", zone));
    insert(1, 2, 100);
    EXPECT_TRUE(
        admin.value<bool>("SELECT day = (now() AT TIME ZONE 'UTC')::date FROM economy.accounts "
                          "WHERE member_id = 1"));
    EXPECT_EQ(admin.value<std::string>("SELECT to_char(economy._day_ends(timestamptz '2024-02-28 23:59:59+00') "
                                       "AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')"),
              "2024-02-29 00:00");
  }
  EXPECT_EQ(admin.value<std::int64_t>("SELECT day_used FROM economy.accounts WHERE member_id = 1"), 300);
}

TEST_F(Checks, a_limit_of_zero_blocks_everything_and_no_limit_blocks_nothing) {
  settings(R"({"daily_limit": 0})");
  mint(1, 10'000);
  EXPECT_EQ(checks(insert(1, 2, 1)), "110");
  settings(R"({"daily_limit": null})");
  EXPECT_EQ(state(insert(1, 2, 9'000)), "approved");
}

TEST_F(Checks, spare_government_accounts_cooldown_and_limit_but_not_the_balance) {
  settings(R"({"cooldown_seconds": 300, "daily_limit": 10})");
  mint(1, 1'000);
  make_government(1);
  const auto rows = create({{1, 2, 400}, {1, 2, 400}, {1, 2, 400}});
  EXPECT_EQ(column(rows, "status"), (Texts{"approved", "approved", "checking"}));
  EXPECT_EQ(checks(rows[2].get<Uuid>("transfer_id")), "011");
}

TEST_F(Checks, announce_their_results_in_the_documented_format) {
  settings(R"({"cooldown_seconds": 300, "daily_limit": 500})");
  mint(1, 500);
  ear.take();
  const auto id = insert(1, 2, 100);
  EXPECT_EQ(ear.take_json(),
            (events(id, {R"("event_type": "transfer_check_result", "check_type": "balance", "result": 1, "guild_id": 7,
                            "initiator_id": 1, "balance": 500, "required": 100)",
                         R"("event_type": "transfer_check_result", "check_type": "cooldown", "result": 1, "guild_id": 7,
                            "initiator_id": 1, "throttled_until": null)",
                         R"("event_type": "transfer_check_result", "check_type": "daily_limit", "result": 1,
                            "guild_id": 7, "initiator_id": 1, "total_today": 0, "attempted_amount": 100, "limit": 500)",
                         R"("event_type": "transfer_check_approved", "guild_id": 7, "initiator_id": 1, "target_id": 2,
                            "amount": 100)"})));

  insert(1, 2, 450);
  const auto failed = ear.take_json();
  ASSERT_EQ(failed.size(), 3U);
  EXPECT_EQ(fields(failed[0], {"result", "balance", "required"}), (std::vector<value>{0, 400, 450}));
  EXPECT_EQ(failed[1].at("result"), 0);
  EXPECT_TRUE(admin.value<bool>("SELECT $1::timestamptz BETWEEN now() + interval '290 s' AND now() + interval '300 s'",
                                pg::Params::of(std::string(failed[1].at("throttled_until").as_string()))));
  EXPECT_EQ(fields(failed[2], {"result", "total_today", "attempted_amount", "limit"}),
            (std::vector<value>{0, 100, 450, 500}));
}

TEST_F(Checks, announce_64_bit_ids_as_numbers) {
  constexpr std::int64_t kBig = 9'007'199'254'740'993;  // more than a double can tell apart
  mint(kBig, 5);
  ear.take();
  insert(kBig, kBig + 2, 5);
  EXPECT_THAT(ear.take().back(),
              ::testing::HasSubstr("\"initiator_id\": 9007199254740993, \"target_id\": 9007199254740995"));
}

TEST_F(Checks, called_singly_announce_their_result_and_change_nothing) {
  settings(R"({"cooldown_seconds": 300, "daily_limit": 50})");
  mint(1, 100);
  insert(1, 2, 10);
  const auto id = insert(1, 2, 45);
  ear.take();
  const auto result = [&](const std::string& check) {
    return admin.must(fmt::format("SELECT economy.fn_check_transfer_{}($1)", check), pg::Params::of(id))
        .one()
        .get<std::optional<std::int64_t>>(0);
  };
  EXPECT_EQ(result("balance"), 1);
  EXPECT_EQ(result("cooldown"), 0);
  EXPECT_EQ(result("daily_limit"), 0);
  const auto events = ear.take_json();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(fields(events[0], {"check_type", "result", "balance", "required"}),
            (std::vector<value>{"balance", 1, 90, 45}));
  EXPECT_EQ(fields(events[1], {"check_type", "result"}), (std::vector<value>{"cooldown", 0}));
  EXPECT_EQ(fields(events[2], {"check_type", "result", "total_today"}), (std::vector<value>{"daily_limit", 0, 10}));
  EXPECT_EQ(state(id), "checking 0");
  admin.must(kCancel, pg::Params::of(id));
  ear.take();
  EXPECT_EQ(result("balance"), std::nullopt);
  EXPECT_TRUE(ear.take().empty());
}

TEST_F(Checks, can_be_run_early_for_one_transfer_without_counting_a_retry) {
  const auto id = insert(1, 2, 5);
  const auto approve = [&] {
    return admin.value<bool>("SELECT economy._check_and_approve_transfer($1)", pg::Params::of(id));
  };
  EXPECT_FALSE(approve());
  EXPECT_EQ(state(id), "checking 0");
  mint(1, 5);
  EXPECT_TRUE(approve());
  EXPECT_EQ(state(id), "approved");
  EXPECT_FALSE(approve());
}

TEST_F(Checks, wake_the_nodes_once_for_each_commit) {
  Ear work(db.dsn(), "economy_work");
  mint(1, 100);
  admin.must("BEGIN");
  for (int i = 0; i < 3; ++i) insert(1, 2, 1);
  admin.must("COMMIT");
  EXPECT_EQ(work.take().size(), 1U);
}

TEST_F(Checks, send_nothing_that_would_be_too_long_for_a_notification) {
  mint(1, 100);
  const std::string long_text(400, 'x');
  admin.must(
      "INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount, reason, metadata) "
      "VALUES (7, 1, 2, 5, $1, jsonb_build_object('note', repeat('y', 8000)))",
      pg::Params::of(long_text));
  for (const auto& payload : ear.take()) EXPECT_LT(payload.size(), 400U);
  EXPECT_EQ(process(), 1);
}

TEST_F(Checks, are_listed_newest_first_by_status) {
  mint(1, 100);
  const auto done = insert(1, 2, 10);
  process();
  const auto waiting = insert(1, 2, 1000);
  const auto cancelled = insert(1, 2, 1000);
  admin.must(kCancel, pg::Params::of(cancelled));
  const auto approved = insert(1, 2, 10);
  const auto list = [&](const std::string& arguments) {
    return column(admin.must(fmt::format("SELECT transfer_id FROM economy.fn_list_pending_transfers(7{})", arguments)),
                  "transfer_id");
  };
  EXPECT_EQ(list(""), (Texts{approved.to_string(), cancelled.to_string(), waiting.to_string(), done.to_string()}));
  EXPECT_EQ(list(", NULL, 2, 1"), (Texts{cancelled.to_string(), waiting.to_string()}));
  EXPECT_EQ(list(", 'completed'"), Texts{done.to_string()});
  EXPECT_EQ(list(", 'checking'"), Texts{waiting.to_string()});
  EXPECT_EQ(list(", 'rejected'"), Texts{cancelled.to_string()});
  EXPECT_EQ(list(", 'approved'"), Texts{approved.to_string()});
  EXPECT_EQ(list(", 'pending'"), Texts{});
  const auto before = admin.value<std::string>("SELECT seq FROM economy.pending_transfers WHERE transfer_id = $1",
                                               pg::Params::of(waiting));
  EXPECT_EQ(list(", NULL, 10, 0, " + before), Texts{done.to_string()});
}

}  // namespace
}  // namespace fencepost::transfer
