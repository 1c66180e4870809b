// The ledger: operators' actions, refused rows, and immutability.
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

class Ledger : public EconomyTest {};

TEST_F(Ledger, minting_debits_and_burning_credits_the_system_account) {
  EXPECT_EQ(mint(1, 100), "completed");
  EXPECT_EQ(burn(1, 30), "completed");
  EXPECT_EQ(account(1), "70/0");
  EXPECT_EQ(account(0), "-70/0");
  EXPECT_EQ(column(admin.must("SELECT member_id || ':' || amount || '=' || balance_after AS e FROM economy.entries "
                              "ORDER BY transaction_id, amount"),
                   "e"),
            (Texts{"0:-100=-100", "1:100=100", "1:-30=70", "0:30=-70"}));
  EXPECT_EQ(audit(), "");
}

TEST_F(Ledger, an_operators_action_is_recorded_with_its_reason) {
  mint(1, 100);
  settings(R"({"max_retries": 3})");
  make_government(1);
  EXPECT_EQ(column(admin.must("SELECT action || ' ' || coalesce(member_id, 0) || ' ' || reason || ' ' || actor AS a "
                              "FROM economy.operations WHERE operation_id > 1 ORDER BY operation_id"),
                   "a"),
            (Texts{"mint 1 test tester", "set_settings 0 test tester", "set_account_kind 1 test tester"}));
}

TEST_F(Ledger, minting_more_than_fits_is_refused_before_anything_is_written) {
  EXPECT_EQ(mint(1, kMax - 10), "completed");
  EXPECT_EQ(mint(2, 11), "supply_overflow");
  EXPECT_EQ(account(2), "0/0");
  EXPECT_EQ(mint(2, 10), "completed");
  EXPECT_EQ(mint(2, 1), "supply_overflow");
  // The whole supply moves there and back twice in a day: no intermediate sum overflows.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(column(transfer_now({{2, 1, i == 0 ? 10 : kMax}}), "outcome"), Texts{"completed"});
    EXPECT_EQ(account(1), fmt::format("{}/0", kMax));
    EXPECT_EQ(column(transfer_now({{1, 2, kMax}}), "outcome"), Texts{"completed"});
  }
  EXPECT_EQ(admin.value<std::int64_t>("SELECT day_used FROM economy.accounts WHERE member_id = 1"), kMax);
  EXPECT_EQ(audit(), "");
}

TEST_F(Ledger, burning_takes_only_what_is_not_reserved) {
  mint(1, 100);
  insert(1, 2, 80);
  EXPECT_EQ(burn(1, 21), "insufficient_balance");
  EXPECT_EQ(burn(1, 20), "completed");
  EXPECT_EQ(account(1), "80/80");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(account(1), "0/0");
}

TEST_F(Ledger, minting_needs_an_amount_and_a_member) {
  for (const auto amount : {std::int64_t{0}, std::int64_t{-5}}) EXPECT_EQ(mint(1, amount), "invalid");
  EXPECT_EQ(mint(0, 5), "invalid");
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.transactions"), 0);
}

TEST_F(Ledger, a_minting_key_is_one_minting) {
  constexpr std::string_view kKeyed = "SELECT outcome FROM economy.fn_mint($1, 1, $2, 'test', 'tester', 'k')";
  EXPECT_EQ(admin.value<std::string>(kKeyed, pg::Params::of(kGuild, 5)), "completed");
  EXPECT_EQ(admin.value<std::string>(kKeyed, pg::Params::of(kGuild, 5)), "existing");
  EXPECT_EQ(admin.value<std::string>(kKeyed, pg::Params::of(kGuild, 6)), "conflict");
  EXPECT_EQ(account(1), "5/0");
}

TEST_F(Ledger, is_never_changed) {
  mint(1, 100);
  for (const auto* sql : {"UPDATE economy.transactions SET amount = 1", "UPDATE economy.transactions SET reason = NULL",
                          "DELETE FROM economy.transactions", "TRUNCATE economy.transactions",
                          "DELETE FROM economy.accounts", "TRUNCATE economy.accounts"}) {
    EXPECT_EQ(admin.ask(sql).sqlstate, "23000") << sql;
  }
  EXPECT_EQ(admin.value<std::int64_t>("SELECT amount FROM economy.transactions"), 100);
}

// Other isolation levels do not see rows committed during a wait for a lock, so a key could be used twice.
TEST_F(Ledger, money_moves_in_read_committed_only) {
  mint(1, 100);
  for (const auto* level : {"REPEATABLE READ", "SERIALIZABLE"}) {
    admin.must(fmt::format("BEGIN ISOLATION LEVEL {}", level));
    EXPECT_EQ(admin.ask(kNow, now_params({{1, 2, 5}})).sqlstate, "25000") << level;
    admin.must("ROLLBACK");
  }
  EXPECT_EQ(account(1), "100/0");
}

TEST_F(Ledger, invalid_rows_are_refused) {
  mint(1, 100);
  for (const auto* values : {"'transfer', 1, 2, 0", "'transfer', 1, 2, -1", "'transfer', 1, 1, 5",
                             "'transfer', 0, 1, 5", "'mint', 1, 2, 5", "'burn', 1, 2, 5", "'gift', 1, 2, 5"}) {
    const auto sql = fmt::format(
        "INSERT INTO economy.transactions (transfer_id, kind, guild_id, debit_id, credit_id, amount, debit_after, "
        "credit_after) SELECT gen_random_uuid(), v.kind, 7, d, c, n, 0, 0 FROM (VALUES ({})) AS v(kind, d, c, n)",
        values);
    EXPECT_EQ(admin.ask(sql).sqlstate, "23514") << values;
  }
}

TEST_F(Ledger, a_balance_covers_the_reserved_amount_except_for_the_system_account) {
  mint(1, 100);
  for (const auto* set : {"reserved = 101", "reserved = -1", "balance = -1", "kind = 'system'"}) {
    EXPECT_EQ(admin.ask(fmt::format("UPDATE economy.accounts SET {} WHERE member_id = 1", set)).sqlstate, "23514")
        << set;
  }
  EXPECT_EQ(account(0), "-100/0");
}

TEST_F(Ledger, settings_have_defaults_and_refuse_invalid_values) {
  const auto of = [&](std::int64_t guild) {
    return admin.value<std::string>(
        "SELECT concat_ws(' ', coalesce(daily_limit::text, 'none'), cooldown_seconds, default_expiry_hours, "
        "max_retries) "
        "FROM economy._settings($1)",
        pg::Params::of(guild));
  };
  EXPECT_EQ(of(99), "500 300 24 10");
  settings(R"({"daily_limit": null})", 99);
  EXPECT_EQ(of(99), "none 300 24 10");
  settings(R"({"daily_limit": 0, "default_expiry_hours": 1})", 99);
  EXPECT_EQ(of(99), "0 300 1 10");
  for (const auto* changes : {R"({"dailyLimit": 1})", R"({"daily_limit": -1})", R"({"cooldown_seconds": null})",
                              R"({"max_retries": "many"})"}) {
    EXPECT_FALSE(
        admin.ask("SELECT economy.fn_set_settings(99, $1::jsonb, 'test', 'tester')", pg::Params::of(changes)).ok())
        << changes;
  }
  EXPECT_EQ(of(99), "0 300 1 10");
}

// Operators read these messages in psql.
TEST_F(Ledger, an_invalid_call_raises_a_clear_error) {
  const auto raises = [&](const std::string& call, const std::string& words) {
    const auto answer = admin.ask("SELECT economy." + call);
    EXPECT_EQ(answer.sqlstate, "22023") << call << ": " << answer.message;
    EXPECT_NE(answer.message.find(words), std::string::npos) << call << ": " << answer.message;
  };
  raises("fn_set_settings(-5, '{\"max_retries\": 3}', 'r', 'a')", "expected a guild and an object");
  raises("fn_set_settings(7, NULL, 'r', 'a')", "expected a guild and an object");
  raises("fn_set_settings(7, '[1]', 'r', 'a')", "expected a guild and an object");
  raises("fn_set_settings(7, '{\"colour\": 3}', 'r', 'a')", "guilds have no setting colour");
  raises("fn_set_settings(7, '{\"max_retries\": 3}', NULL, 'a')", "operators say why");
  raises("fn_set_account_kind(7, 1, 'king', 'r', 'a')", "made member or government, not king");
  raises("fn_set_account_kind(7, 0, 'member', 'r', 'a')", "a member of a guild");
  raises("fn_set_account_kind(7, 1, 'member', '', 'a')", "operators say why");
  raises("fn_mint(7, 1, 5, NULL, 'a')", "operators say why");
  raises("fn_mint(7, 1, 5, 'r', NULL)", "operators say why");
  raises("fn_mint(7, 1, 5, 'r', 'a', '')", "1 to 128 bytes");
  raises("fn_create_pending_transfer(7, 1, 2, 5, p_expires_hours => -5)", "after 1 to 8760 hours, not after -5");
  raises("fn_list_pending_transfers(7, 'done')", "no transfer is ever done");
  EXPECT_EQ(admin.value<int>("SELECT count(*) FROM economy.operations WHERE reason <> 'test'"), 0);
}

TEST_F(Ledger, the_record_of_operators_is_never_changed) {
  mint(1, 100);
  EXPECT_EQ(admin.ask("DELETE FROM economy.operations").sqlstate, "23000");
  EXPECT_EQ(admin.ask("UPDATE economy.operations SET reason = 'another'").sqlstate, "23000");
  EXPECT_EQ(admin.ask("TRUNCATE economy.operations").sqlstate, "23000");
}

// The grants are those of docs/transfers.md.
}  // namespace
}  // namespace fencepost::transfer
