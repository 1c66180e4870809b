// The audit finds corruption that only a superuser could cause.
#include <gmock/gmock.h>

#include "tests/support/with_pool.hpp"
#include "transfer/audit.hpp"
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

class Audit : public EconomyTest {
 protected:
  // An economy with rows of every kind.
  void SetUp() override {
    EconomyTest::SetUp();
    mint(1, 1'000);
    mint(2, 10);
    transfer_now({{1, 2, 100}});
    insert(1, 2, 50);
    process();
    insert(1, 2, 40);      // approved
    insert(2, 1, 10'000);  // checking
    admin.must(kCancel, pg::Params::of(insert(2, 1, 20'000)));
    ASSERT_EQ(audit(), "");
  }

  // The checks that fail after `sql`, which is rolled back.
  Texts found_after(const std::string& sql) {
    admin.must("BEGIN");
    admin.must("SET LOCAL session_replication_role = replica");
    admin.must(sql);
    auto found = column(admin.must("SELECT check_name FROM economy.fn_audit() WHERE wrong > 0"), "check_name");
    admin.must("ROLLBACK");
    return found;
  }
};

TEST_F(Audit, finds_each_kind_of_corruption) {
  const std::vector<std::pair<std::string, Texts>> corruptions{
      {"UPDATE economy.accounts SET balance = balance + 1 WHERE member_id = 1",
       {"supply_balances", "balances_are_their_entries"}},
      {"UPDATE economy.transactions SET credit_after = credit_after + 1 WHERE id = (SELECT max(id) FROM "
       "economy.transactions)",
       {"running_balances_follow"}},
      {"UPDATE economy.accounts SET day_used = day_used - 1 WHERE member_id = 1", {"days_use_is_what_was_approved"}},
      {"UPDATE economy.accounts SET day = NULL WHERE member_id = 1", {"days_use_is_what_was_approved"}},
      {"UPDATE economy.transfer_work SET counted_on = NULL WHERE approved", {"days_use_is_what_was_approved"}},
      {"UPDATE economy.pending_transfers SET updated_at = updated_at + interval '1 s' WHERE status = 'completed'",
       {"finished_transfers_rest"}},
      {"UPDATE economy.pending_transfers SET updated_at = updated_at + interval '1 s' WHERE status = 'rejected'",
       {"finished_transfers_rest"}},
      {"DELETE FROM economy.operations WHERE action = 'mint' AND member_id = 2", {"supply_has_its_operations"}},
      {"UPDATE economy.operations SET detail = detail || '{\"amount\": \"9\"}' WHERE action = 'mint' AND member_id = 2",
       {"supply_has_its_operations"}},
      {"INSERT INTO economy.operations (guild_id, member_id, action, reason, actor, detail) SELECT guild_id, "
       "member_id, "
       "action, reason, actor, detail FROM economy.operations WHERE action = 'mint' AND member_id = 2",
       {"supply_has_its_operations"}},
      {"UPDATE economy.accounts SET awaits_money = false", {"credits_look_for_waiting_transfers"}},
      {"INSERT INTO economy.operations (guild_id, member_id, action, reason, actor, detail) VALUES (7, 1, 'mint', 'r', "
       "'a', '{\"amount\": \"5\", \"ledgerId\": \"999999\"}')",
       {"supply_has_its_operations"}},
      {"UPDATE economy.accounts SET balance = balance + CASE member_id WHEN 1 THEN 5 ELSE -5 END WHERE member_id > 0",
       {"balances_are_their_entries"}},
      {"DELETE FROM economy.accounts WHERE member_id = 2",
       {"supply_balances", "balances_are_their_entries", "credits_look_for_waiting_transfers"}},
      {"UPDATE economy.accounts SET reserved = reserved - 1 WHERE member_id = 1", {"reserved_is_approved"}},
      {"UPDATE economy.accounts SET reserved = 3 WHERE member_id = 2", {"reserved_is_approved"}},
      {"DELETE FROM economy.transactions WHERE id = (SELECT max(id) FROM economy.transactions)",
       {"balances_are_their_entries", "days_use_is_what_was_approved", "completed_has_its_ledger_row"}},
      {"UPDATE economy.transactions SET amount = amount + 1 WHERE id = (SELECT max(id) FROM economy.transactions)",
       {"balances_are_their_entries", "running_balances_follow", "days_use_is_what_was_approved",
        "completed_has_its_ledger_row"}},
      {"INSERT INTO economy.transactions (transfer_id, kind, guild_id, debit_id, credit_id, amount, debit_after, "
       "credit_after) SELECT transfer_id, 'transfer', 7, 1, 2, 40, 0, 0 FROM economy.pending_transfers "
       "WHERE status = 'approved'",
       {"balances_are_their_entries", "running_balances_follow", "nothing_else_has_a_ledger_row"}},
      {"UPDATE economy.pending_transfers SET status = 'checking' WHERE status = 'completed'",
       {"nothing_else_has_a_ledger_row", "open_transfers_have_work"}},
      {"UPDATE economy.pending_transfers SET status = 'completed' WHERE status = 'checking'",
       {"completed_has_its_ledger_row", "open_transfers_have_work"}},
      {"UPDATE economy.pending_transfers SET status = 'rejected' WHERE status = 'approved'",
       {"reserved_is_approved", "open_transfers_have_work", "denials_are_of_rejected"}},
      {"UPDATE economy.pending_transfers SET status = 'pending' WHERE status = 'checking'",
       {"open_transfers_have_work"}},
      {"DELETE FROM economy.transfer_work WHERE NOT approved", {"open_transfers_have_work"}},
      {"DELETE FROM economy.transfer_work WHERE approved",
       {"reserved_is_approved", "days_use_is_what_was_approved", "open_transfers_have_work"}},
      {"UPDATE economy.transfer_work SET approved = true", {"open_transfers_have_work"}},
      {"DELETE FROM economy.transfer_denials", {"denials_are_of_rejected"}},
      {"INSERT INTO economy.operations (guild_id, action, reason, actor, detail) SELECT 7, 'fail', 'r', 'a', "
       "jsonb_build_object('transferId', transfer_id) FROM economy.pending_transfers WHERE status = 'approved'",
       {"failed_by_hand_is_rejected"}},
      {"INSERT INTO economy.transfer_denials (guild_id, seq, transfer_id, reason) SELECT guild_id, seq, transfer_id, "
       "'transfer_cancelled' FROM economy.pending_transfers WHERE status = 'completed'",
       {"denials_are_of_rejected"}},
  };
  for (const auto& [sql, expected] : corruptions) EXPECT_EQ(found_after(sql), expected) << sql;
  EXPECT_EQ(audit(), "");
}

TEST_F(Audit, names_an_example) {
  tamper("UPDATE economy.accounts SET reserved = 41 WHERE member_id = 1");
  EXPECT_EQ(audit(), "reserved_is_approved: 1, e.g. guild 7, member 1: reserved 41, approved 40");
}

TEST_F(Audit, is_not_disturbed_by_finished_transfers_that_were_deleted) {
  admin.must("DELETE FROM economy.pending_transfers WHERE status IN ('completed', 'rejected')");
  EXPECT_EQ(audit(), "");
}

TEST_F(Audit, reads_all_findings_including_passed_checks) {
  tamper("DELETE FROM economy.transfer_denials");
  test::with_pool(db.dsn(), {}, [](pg::Pool& pool) -> awaitable<> {
    const auto findings = co_await transfer::audit(pool);
    EXPECT_EQ(findings.size(), 13U);
    for (const auto& finding : findings) {
      EXPECT_EQ(finding.wrong, finding.check == "denials_are_of_rejected" ? 1 : 0) << finding.check;
      EXPECT_EQ(finding.example.has_value(), finding.wrong > 0) << finding.check;
    }
  });
}

}  // namespace
}  // namespace fencepost::transfer
