// Two and three concurrent sessions, in every order. A function call is one step, so a third session that holds a lock
// stops the others in the middle of their calls.
#include <set>

#include "tests/support/eventually.hpp"
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

using interleaving::all_orders;
using interleaving::commit;
using interleaving::opening;
using interleaving::Order;
using interleaving::Script;
using interleaving::statement;
using interleaving::Theatre;

class Interleaving : public EconomyTest {
 protected:
  // One statement in a transaction of its own.
  static Script script(std::string_view sql, pg::Params params = {}, std::function<void(Answer)> then = {}) {
    return {opening(statement("call", sql, std::move(params), std::move(then))), commit()};
  }
  Script hold(std::int64_t member) {
    return {opening(statement("hold",
                              "SELECT FROM economy.accounts WHERE guild_id = 7 AND member_id = $1 FOR NO KEY UPDATE",
                              pg::Params::of(member))),
            commit()};
  }
  // All orders of three transactions in which the third begins first.
  static std::vector<Order> orders_while_held() {
    auto orders = all_orders(std::vector<std::size_t>{2, 2, 1});
    for (auto& order : orders) order.insert(order.begin(), 2);
    return orders;
  }
  Script now(const std::vector<Wish>& wishes, Texts* outcomes = nullptr) {
    return script(kNow, now_params(wishes), into(outcomes));
  }
  Script creating(const std::vector<Wish>& wishes, Texts* outcomes = nullptr) {
    return script(kCreate, create_params(wishes), into(outcomes));
  }
  static std::function<void(Answer)> into(Texts* outcomes) {
    return [outcomes](const Answer& answer) {
      ASSERT_TRUE(answer.ok()) << answer.message;
      if (outcomes != nullptr) *outcomes = column(answer.rows, "outcome");
    };
  }

  std::int64_t next_member = 1000;
  Theatre theatre{db.dsn()};
  Session a{db.dsn(), "a"};
  Session b{db.dsn(), "b"};
  Session c{db.dsn(), "c"};
};

TEST_F(Interleaving, opposite_directions_never_deadlock) {
  for (const std::int64_t member : {1, 2}) mint(member, 1'000'000);
  const Wish there{.from = 1, .to = 2, .amount = 10};
  const Wish back{.from = 2, .to = 1, .amount = 10};
  const std::vector<std::function<Script(const Wish&, const Wish&)>> kinds{
      [&](const Wish& first, const Wish& second) { return now({first, second}); },
      [&](const Wish& first, const Wish& second) { return creating({first, second}); },
      [&](const Wish&, const Wish&) { return script(kProcess); }};
  int waits = 0;
  for (const std::int64_t held : {1, 2}) {
    for (std::size_t of_a = 0; of_a < kinds.size(); ++of_a) {
      for (std::size_t of_b = of_a; of_b < kinds.size(); ++of_b) {
        for (const auto& order : orders_while_held()) {
          create({there, back});  // transfers to process
          theatre.play({{a, kinds[of_a](there, back)}, {b, kinds[of_b](back, there)}, {c, hold(held)}}, order);
          waits += theatre.trace().contains("waits") ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(waits, 200) << "the sessions rarely waited for each other, so the test proves little";
  process();
  EXPECT_EQ(audit(), "");
}

TEST_F(Interleaving, sets_that_open_the_same_accounts_never_deadlock) {
  std::int64_t fresh = 100;
  mint(1, 1'000'000);
  mint(2, 1'000'000);
  for (const std::int64_t held : {1, 2}) {
    for (const auto& order : orders_while_held()) {
      fresh += 2;
      theatre.play({{a, now({{1, fresh + 1, 5}, {1, fresh, 5}, {2, 1, 5}})},
                    {b, now({{2, fresh, 5}, {2, fresh + 1, 5}, {1, 2, 5}})},
                    {c, hold(held)}},
                   order);
      ASSERT_EQ(account(fresh), "10/0") << theatre.trace();
    }
  }
  EXPECT_EQ(audit(), "");
}

TEST_F(Interleaving, concurrent_approvals_never_exceed_the_balance) {
  const auto play = [&](const Order& order, std::vector<bool> synchronous) {
    const auto payer = ++next_member;
    mint(payer, 100);
    const std::vector<Wish> wishes{{payer, 2, 60}, {payer, 2, 40}};
    Session* sessions[]{&a, &b, &c};
    std::vector<interleaving::Part> parts;
    parts.reserve(synchronous.size());
    for (std::size_t i = 0; i < synchronous.size(); ++i) {
      parts.push_back({*sessions[i], synchronous[i] ? now(wishes) : creating(wishes)});
    }
    theatre.play(parts, order);
    ASSERT_EQ(admin.value<std::int64_t>(
                  "SELECT 100 - balance + reserved FROM economy.accounts WHERE guild_id = 7 AND member_id = $1",
                  pg::Params::of(payer)),
              100)
        << "the whole balance is approved, and no more: " << theatre.trace();
  };
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2, 2})) play(order, {true, false, false});
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2})) {
    for (const bool first : {true, false}) {
      for (const bool second : {true, false}) play(order, {first, second});
    }
  }
  process();
  EXPECT_EQ(audit(), "");
}

// What is approved in all, whichever session comes first and in whichever mode.
TEST_F(Interleaving, concurrent_approvals_never_exceed_the_days_limit) {
  settings(R"({"daily_limit": 100})");
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2, 2})) {
    const auto payer = ++next_member;
    mint(payer, 1'000);
    const std::vector<Wish> wishes{{payer, 2, 60}, {payer, 2, 40}};
    theatre.play({{a, now(wishes)}, {b, creating(wishes)}, {c, now(wishes)}}, order);
    process();
    ASSERT_EQ(account(payer), "900/0") << "all of the limit, and no more: " << theatre.trace();
    ASSERT_EQ(
        admin.value<std::int64_t>("SELECT day_used FROM economy.accounts WHERE member_id = $1", pg::Params::of(payer)),
        100);
  }
}

TEST_F(Interleaving, concurrent_approvals_pass_one_cooldown_once) {
  settings(R"({"cooldown_seconds": 300})");
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2, 2})) {
    const auto payer = ++next_member;
    mint(payer, 1'000);
    const auto waiting = insert(payer, 2, 5'000);
    mint(payer, 4'000);  // due, and would pass
    const std::vector<Wish> wishes{{payer, 2, 1}, {payer, 2, 1}};
    theatre.play({{a, now(wishes)}, {b, creating(wishes)}, {c, script(kProcess)}}, order);
    process();
    ASSERT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.entries WHERE member_id = $1 AND amount < 0",
                                        pg::Params::of(payer)),
              1)
        << state(waiting) << theatre.trace();
  }
}

TEST_F(Interleaving, inserts_by_hand_and_by_function_share_one_balance) {
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2})) {
    const auto payer = ++next_member;
    mint(payer, 100);
    theatre.play({{a, script(kInsert, pg::Params::of(kGuild, payer, 2, 100))}, {b, creating({{payer, 2, 100}})}},
                 order);
    ASSERT_EQ(account(payer), "100/100") << theatre.trace();
  }
}

// The first session decides, and the other sees the decision.
TEST_F(Interleaving, expiry_and_approval_never_both_happen) {
  db.exec(R"(
    CREATE FUNCTION expire_now(p_id uuid) RETURNS void LANGUAGE plpgsql SET session_replication_role = replica AS $$
    BEGIN
      UPDATE economy.transfer_work SET expires_at = now() - interval '1 s' WHERE transfer_id = p_id;
      UPDATE economy.pending_transfers SET expires_at = now() - interval '1 s' WHERE transfer_id = p_id;
    END $$)");
  std::set<std::string> ends;
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2, 1})) {
    for (const bool processing : {true, false}) {
      const auto payer = ++next_member;
      const auto id = insert(payer, 2, 50);
      mint(payer, 50);  // the transfer is due and would pass
      const auto approving =
          processing ? script(kProcess) : script("SELECT economy._check_and_approve_transfer($1)", pg::Params::of(id));
      // The transfer expires at some point of the order: before it approval is allowed, after it only expiry.
      const Script time{statement("time", fmt::format("SELECT expire_now('{}')", id.to_string()))};
      theatre.play({{a, approving}, {b, script(kExpire)}, {c, time}}, order);
      process();
      expire();
      const auto end = state(id);
      ends.insert(end);
      ASSERT_TRUE(end == "completed" || end == "rejected transfer_checks_expired") << end << theatre.trace();
      ASSERT_EQ(account(payer), end == "completed" ? "0/0" : "50/0") << theatre.trace();
      ASSERT_EQ(audit(), "") << theatre.trace();
    }
  }
  EXPECT_EQ(ends.size(), 2U) << "each of the two outcomes must occur";
}

TEST_F(Interleaving, cancelling_and_approval_never_both_happen) {
  std::set<std::string> ends;
  for (const auto& order : orders_while_held()) {
    const auto payer = ++next_member;
    const auto id = insert(payer, 2, 50);
    mint(payer, 50);
    bool cancelled = false;
    const auto cancelling = script(kCancel, pg::Params::of(id), [&](const Answer& answer) {
      ASSERT_TRUE(answer.ok()) << answer.message << theatre.trace();
      cancelled = answer.rows.one().get<bool>("cancelled");
    });
    theatre.play({{a, script(kProcess)}, {b, cancelling}, {c, hold(payer)}}, order);
    process();
    const auto end = state(id);
    ends.insert(end);
    ASSERT_EQ(end, cancelled ? "rejected transfer_cancelled" : "completed") << theatre.trace();
    ASSERT_EQ(account(payer), cancelled ? "50/0" : "0/0") << theatre.trace();
    ASSERT_EQ(audit(), "") << theatre.trace();
  }
  EXPECT_EQ(ends.size(), 2U);
}

TEST_F(Interleaving, one_key_is_one_transfer_across_sessions_and_modes) {
  const auto play = [&](const Order& order, std::vector<bool> synchronous) {
    const auto payer = ++next_member;
    mint(payer, 100);
    const std::vector<Wish> wishes{{.from = payer, .to = 2, .amount = 10, .key = "k"}};
    Session* sessions[]{&a, &b, &c};
    Texts outcomes[3];
    std::vector<interleaving::Part> parts;
    parts.reserve(synchronous.size());
    for (std::size_t i = 0; i < synchronous.size(); ++i) {
      parts.push_back({*sessions[i], synchronous[i] ? now(wishes, &outcomes[i]) : creating(wishes, &outcomes[i])});
    }
    theatre.play(parts, order);
    int made = 0;
    for (const auto& outcome : outcomes) made += outcome == Texts{"created"} || outcome == Texts{"completed"} ? 1 : 0;
    ASSERT_EQ(made, 1) << theatre.trace();
    process();
    ASSERT_EQ(account(payer), "90/0") << theatre.trace();
  };
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2, 2})) play(order, {true, false, true});
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2})) {
    for (const bool first : {true, false}) {
      for (const bool second : {true, false}) play(order, {first, second});
    }
  }
}

TEST_F(Interleaving, keys_of_a_payer_without_an_account_are_single_too) {
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2})) {
    const auto payer = ++next_member;
    const std::vector<Wish> wishes{{.from = payer, .to = 2, .amount = 10, .key = "k"},
                                   {.from = payer, .to = 2, .amount = 10, .key = "l"}};
    theatre.play({{a, creating(wishes)}, {b, creating({wishes[1], wishes[0]})}}, order);
    ASSERT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.pending_transfers WHERE initiator_id = $1",
                                        pg::Params::of(payer)),
              2);
  }
}

TEST_F(Interleaving, minting_never_exceeds_what_fits) {
  constexpr auto kHalf = std::numeric_limits<std::int64_t>::max() / 2 + 1;
  std::int64_t guild = 100;
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2})) {
    ++guild;
    const auto minting = [&](std::int64_t member) {
      return script("SELECT outcome FROM economy.fn_mint($1, $2, $3, 'test', 'tester')",
                    pg::Params::of(guild, member, kHalf));
    };
    theatre.play({{a, minting(1)}, {b, minting(2)}}, order);
    ASSERT_EQ(account(0, guild), fmt::format("{}/0", -kHalf)) << theatre.trace();
  }
}

// A transfer that becomes due while a call waits for a lock is left to the next call, and this call reports its
// due time.
TEST_F(Interleaving, a_transfer_that_becomes_due_during_a_call_is_not_lost) {
  mint(1, 100);
  insert(1, 2, 10);
  const auto later = insert(5, 2, 10);
  std::optional<std::string> next;
  const auto processing = script(kProcess, {}, [&](const Answer& answer) {
    ASSERT_TRUE(answer.ok()) << answer.message;
    EXPECT_EQ(answer.rows.one().get<int>("claimed"), 1);
    next = answer.rows.one().get<std::optional<std::string>>("next_due_at");
  });
  const Script becoming_due{
      statement("due", "UPDATE economy.transfer_work SET due_at = clock_timestamp() WHERE transfer_id = $1",
                pg::Params::of(later))};
  theatre.play({{a, processing}, {b, becoming_due}, {c, hold(1)}}, {2, 0, 1, 2, 0});
  ASSERT_TRUE(theatre.trace().contains("A:call(waits) B:due")) << theatre.trace();
  EXPECT_EQ(next, admin.value<std::string>("SELECT due_at FROM economy.transfer_work WHERE transfer_id = $1",
                                           pg::Params::of(later)));
}

// A credit and a failing check of the same payer: in every order, the transfer is due at once afterwards.
TEST_F(Interleaving, a_credit_is_never_missed) {
  mint(3, 1'000'000);
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2})) {
    for (const bool synchronous : {true, false}) {
      const auto payer = ++next_member;
      mint(payer, 1);
      const auto credit = synchronous
                              ? now({{3, payer, 50}})
                              : script("SELECT economy.fn_mint(7, $1, 50, 'test', 'tester')", pg::Params::of(payer));
      theatre.play({{a, creating({{payer, 2, 51}})}, {b, credit}}, order);
      process();
      ASSERT_EQ(account(payer), "0/0") << theatre.trace();
    }
  }
}

// New settings and a check that still uses the old ones: the transfer is due at once afterwards.
TEST_F(Interleaving, new_settings_are_never_missed) {
  settings(R"({"cooldown_seconds": 300, "daily_limit": null})");
  const auto changing = [&](int seconds) {
    return script(
        "SELECT economy.fn_set_settings(7, jsonb_build_object('cooldown_seconds', $1::integer), 'test', 'tester')",
        pg::Params::of(seconds));
  };
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2})) {
    const auto payer = ++next_member;
    mint(payer, 100);
    settings(R"({"cooldown_seconds": 300})");
    insert(payer, 2, 10);
    process();
    const auto id = insert(payer, 2, 10);
    // Its retries are far apart by now, and one is due.
    admin.must("UPDATE economy.pending_transfers SET retry_count = 8 WHERE transfer_id = $1", pg::Params::of(id));
    admin.must(
        "UPDATE economy.transfer_work SET due_at = clock_timestamp(), next_attempt_at = clock_timestamp() "
        "WHERE transfer_id = $1",
        pg::Params::of(id));
    theatre.play({{a, script(kProcess)}, {b, changing(0)}}, order);
    const bool looked_at = test::eventually([&] {
      process();
      return account(payer) == "80/0";
    });
    ASSERT_TRUE(looked_at) << account(payer) << theatre.trace();
  }
}

// A concurrent credit is not missed either.
TEST_F(Interleaving, new_settings_hide_no_credit) {
  mint(3, 1'000'000);
  int limit = 1'000'000;
  for (const auto& order : all_orders(std::vector<std::size_t>{2, 2})) {
    const auto payer = ++next_member;
    const auto id = insert(payer, 2, 50);
    admin.must("UPDATE economy.transfer_work SET due_at = '9000-01-01', next_attempt_at = '9000-01-01'");
    const auto changing =
        script("SELECT economy.fn_set_settings(7, jsonb_build_object('daily_limit', $1::integer), 'test', 'tester')",
               pg::Params::of(++limit));
    theatre.play({{a, changing}, {b, now({{3, payer, 50}})}}, order);
    process();
    ASSERT_EQ(state(id), "completed") << theatre.trace();
  }
}

}  // namespace
}  // namespace fencepost::transfer
