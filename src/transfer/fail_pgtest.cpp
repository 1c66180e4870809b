// An approved transfer that cannot be executed ends as rejected, and its money is free again.
#include <set>

#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

using interleaving::all_orders;
using interleaving::commit;
using interleaving::opening;
using interleaving::Script;
using interleaving::statement;
using interleaving::Theatre;

class Fail : public EconomyTest {
 protected:
  static constexpr std::string_view kFail = "SELECT * FROM economy.fn_fail_transfer($1, 'stuck', 'tester')";

  // "t rejected": whether it failed, and the status afterwards.
  std::string fail(const Uuid& id) {
    const auto rows = admin.must(kFail, pg::Params::of(id));
    return fmt::format("{} {}", rows.one().get<std::string>("failed"),
                       rows.one().get<std::optional<std::string>>("status").value_or("-"));
  }
  bool refused(const Uuid& id) {
    return admin.value<bool>("SELECT economy.fn_execution_refused($1, 60)", pg::Params::of(id));
  }
  std::int64_t used(std::int64_t member) {
    return admin.value<std::int64_t>("SELECT used_today FROM economy.fn_get_account(7, $1)", pg::Params::of(member));
  }
};

TEST_F(Fail, by_hand_gives_back_what_was_reserved_and_is_audited) {
  mint(1, 100);
  const auto id = insert(1, 2, 60);
  ASSERT_EQ(account(1), "100/60");
  Ear ear(db.dsn(), "economy_events");
  EXPECT_EQ(fail(id), "t rejected");
  EXPECT_EQ(state(id), "rejected transfer_failed");
  EXPECT_EQ(account(1), "100/0");
  EXPECT_EQ(ear.take_json().at(0).at("reason"), "transfer_failed");
  EXPECT_EQ(outbox(id), (Texts{"TransferApproved", "TransferDenied"}));
  const auto record = admin.must("SELECT * FROM economy.operations WHERE action = 'fail'");
  EXPECT_EQ(record.one().get<std::string>("reason"), "stuck");
  EXPECT_EQ(record.one().get<std::string>("actor"), "tester");
  EXPECT_EQ(record.one().get<std::int64_t>("member_id"), 1);
  EXPECT_EQ(record.one().get<boost::json::value>("detail"),
            (boost::json::value{{"transferId", id.to_string()}, {"amount", "60"}}));
  EXPECT_EQ(process(), 0);
  EXPECT_EQ(audit(), "");
}

TEST_F(Fail, is_for_approved_transfers_only) {
  mint(1, 10);
  const auto waiting = insert(1, 2, 100);
  EXPECT_EQ(fail(waiting), "f checking");
  const auto done = insert(1, 2, 10);
  process();
  EXPECT_EQ(fail(done), "f completed");
  admin.must(kCancel, pg::Params::of(waiting));
  EXPECT_EQ(fail(waiting), "f rejected");
  EXPECT_EQ(fail(Uuid{}), "f -");
  EXPECT_EQ(admin.value<int>("SELECT count(*) FROM economy.operations WHERE action = 'fail'"), 0);
  EXPECT_EQ(admin.ask("SELECT economy.fn_fail_transfer($1, '', 'tester')", pg::Params::of(done)).sqlstate, "22023");
}

TEST_F(Fail, gives_back_the_days_allowance_and_keeps_the_cooldown) {
  settings(R"({"daily_limit": 100, "cooldown_seconds": 300})");
  mint(1, 1'000);
  const auto id = insert(1, 2, 60);
  ASSERT_EQ(used(1), 60);
  EXPECT_EQ(fail(id), "t rejected");
  EXPECT_EQ(used(1), 0);
  EXPECT_EQ(checks(insert(1, 2, 100)), "101") << "the cooldown goes on, the allowance is free";
}

TEST_F(Fail, gives_back_no_allowance_of_another_day) {
  settings(R"({"daily_limit": 100})");
  mint(1, 1'000);
  const auto id = insert(1, 2, 60);
  tamper("UPDATE economy.transfer_work SET counted_on = counted_on - 1; UPDATE economy.accounts SET day = day - 1");
  insert(1, 2, 70);
  ASSERT_EQ(used(1), 70);
  EXPECT_EQ(fail(id), "t rejected");
  EXPECT_EQ(used(1), 70);
  EXPECT_EQ(account(1), "1000/70");
}

TEST_F(Fail, gives_back_what_was_counted_when_the_kind_of_the_account_has_changed) {
  settings(R"({"daily_limit": 100})");
  mint(1, 1'000);
  const auto member = [&] { admin.must("SELECT economy.fn_set_account_kind(7, 1, 'member', 'test', 'tester')"); };
  const auto counted = insert(1, 2, 60);
  make_government(1);
  const auto free = insert(1, 2, 500);
  EXPECT_EQ(fail(counted), "t rejected");
  member();
  EXPECT_EQ(used(1), 0);
  insert(1, 2, 10);
  EXPECT_EQ(fail(free), "t rejected");
  EXPECT_EQ(used(1), 10) << "what a government account transfers was never counted";
  EXPECT_EQ(account(1), "1000/10");
}

TEST_F(Fail, makes_due_what_waits_for_the_money_or_the_allowance) {
  settings(R"({"daily_limit": 100})");
  mint(1, 100);
  const auto stuck = insert(1, 2, 100);
  const auto waiting = insert(1, 3, 80);
  ASSERT_EQ(checks(waiting), "010");
  EXPECT_EQ(fail(stuck), "t rejected");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(waiting), "completed");
  EXPECT_EQ(audit(), "");
}

TEST_F(Fail, comes_by_itself_at_the_tenth_integrity_error) {
  mint(1, 100);
  const auto id = insert(1, 2, 60);
  for (int i = 1; i <= 9; ++i) {
    EXPECT_FALSE(refused(id));
    EXPECT_EQ(state(id), "approved") << i;
    EXPECT_EQ(process(), 0) << "deferred";
  }
  EXPECT_TRUE(refused(id));
  EXPECT_EQ(state(id), "rejected transfer_failed");
  EXPECT_EQ(account(1), "100/0");
  EXPECT_FALSE(refused(id));
  EXPECT_EQ(admin.value<int>("SELECT count(*) FROM economy.operations WHERE action = 'fail'"), 0);
  EXPECT_EQ(audit(), "");
}

TEST_F(Fail, never_comes_from_checks_that_were_refused) {
  const auto id = insert(1, 2, 60);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(refused(id));
  EXPECT_EQ(state(id), "checking 0");
  mint(1, 60);
  process();
  EXPECT_EQ(state(id), "completed");
}

// An id that two payers used at once, from before ids were claimed.
TEST_F(Fail, ends_a_transfer_whose_id_is_in_the_ledger_for_another_payer) {
  mint(1, 100);
  mint(3, 100);
  const auto id = insert(1, 2, 10);
  tamper(fmt::format(
      "INSERT INTO economy.transactions (transfer_id, kind, guild_id, debit_id, credit_id, amount, debit_after, "
      "credit_after) VALUES ('{}', 'transfer', 7, 3, 4, 5, 95, 5); UPDATE economy.accounts SET balance = 95 WHERE "
      "member_id = 3; INSERT INTO economy.accounts (guild_id, member_id, balance) VALUES (7, 4, 5)",
      id.to_string()));
  EXPECT_EQ(admin.ask(kProcess).sqlstate, "23505");
  EXPECT_EQ(admin.ask(kCancel, pg::Params::of(id)).rows.one().get<std::string>("status"), "approved");
  EXPECT_EQ(fail(id), "t rejected");
  EXPECT_EQ(account(1), "100/0");
  EXPECT_EQ(audit(), "");
  EXPECT_TRUE(admin.must("SELECT ledger_id FROM economy.fn_get_pending_transfer($1)", pg::Params::of(id))
                  .one()
                  .is_null("ledger_id"));
}

TEST_F(Fail, and_completion_never_both_happen) {
  Theatre theatre(db.dsn());
  Session a(db.dsn(), "a");
  Session b(db.dsn(), "b");
  Session c(db.dsn(), "c");
  std::int64_t payer = 1'000;
  std::set<std::string> ends;
  auto orders = all_orders(std::vector<std::size_t>{2, 2, 1});
  for (auto& order : orders) order.insert(order.begin(), 2);
  for (const auto& order : orders) {
    mint(++payer, 50);
    const auto id = insert(payer, 2, 50);
    bool failed = false;
    const Script failing{opening(statement("call", kFail, pg::Params::of(id),
                                           [&](const Answer& answer) {
                                             ASSERT_TRUE(answer.ok()) << answer.message << theatre.trace();
                                             failed = answer.rows.one().get<bool>("failed");
                                           })),
                         commit()};
    const Script processing{opening(statement("call", kProcess)), commit()};
    const Script holding{
        opening(statement("hold", "SELECT FROM economy.accounts WHERE member_id = $1 FOR NO KEY UPDATE",
                          pg::Params::of(payer))),
        commit()};
    theatre.play({{a, processing}, {b, failing}, {c, holding}}, order);
    process();
    ends.insert(state(id));
    ASSERT_EQ(state(id), failed ? "rejected transfer_failed" : "completed") << theatre.trace();
    ASSERT_EQ(account(payer), failed ? "50/0" : "0/0") << theatre.trace();
    ASSERT_EQ(audit(), "") << theatre.trace();
  }
  EXPECT_EQ(ends.size(), 2U) << "each of the two outcomes must occur";
}

}  // namespace
}  // namespace fencepost::transfer
