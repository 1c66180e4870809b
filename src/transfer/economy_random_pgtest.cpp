// Four sessions run every operation in a random but repeatable order; after every round the books balance.
#include <map>
#include <random>

#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

using interleaving::commit;
using interleaving::opening;
using interleaving::Order;
using interleaving::Script;
using interleaving::statement;
using interleaving::Theatre;

class EconomyRandom : public EconomyTest {
 protected:
  std::int64_t pick(std::int64_t below) { return std::uniform_int_distribution<std::int64_t>(0, below - 1)(engine); }

  std::int64_t guild() { return kGuild + pick(2); }
  // Member 1 takes part in half of all transfers.
  std::int64_t member() { return pick(2) == 0 ? 1 : 1 + pick(6); }

  std::vector<Wish> wishes() {
    std::vector<Wish> out;
    for (auto n = 1 + pick(6); n > 0; --n) {
      Wish wish{.from = member(), .to = member(), .amount = 1 + pick(120), .guild = guild()};
      if (wish.from == wish.to && pick(10) > 0) wish.to = wish.from + 1;  // sometimes it stays invalid
      if (pick(3) == 0) {
        wish.key = fmt::format("k{}", pick(60));
        if (pick(2) == 0) wish.amount = 50;  // so that the same key often has the same terms
        if (pick(2) == 0) wish.to = 8;
      }
      out.push_back(std::move(wish));
    }
    return out;
  }

  interleaving::Turn counted(std::string_view name, std::string_view sql, pg::Params params,
                             std::string_view column_name = {}) {
    return statement(name, sql, std::move(params), [this, column_name](const Answer& answer) {
      ASSERT_TRUE(answer.ok()) << answer.message << theatre.trace();
      if (column_name.empty()) return;
      for (const auto& outcome : column(answer.rows, column_name)) ++tally[outcome];
    });
  }

  interleaving::Turn any() {
    const auto what = pick(20);
    if (what < 5) return counted("create", kCreate, create_params(wishes()), "outcome");
    if (what < 9) return counted("now", kNow, now_params(wishes()), "outcome");
    if (what < 15) {
      return statement("process", "SELECT * FROM economy.fn_process_due($1)", pg::Params::of(1 + pick(20)),
                       [this](const Answer& answer) {
                         ASSERT_TRUE(answer.ok()) << answer.message << theatre.trace();
                         for (const auto* each : {"approved", "waiting", "denied"}) {
                           tally[fmt::format("retry {}", each)] += answer.rows.one().get<int>(each);
                         }
                         tally["executed"] += answer.rows.one().get<int>("completed");
                       });
    }
    if (what == 15) return counted("expire", "SELECT economy.fn_expire_transfers(10)", {});
    if (what == 16 && pick(2) == 0) {
      return counted("fail",
                     "SELECT 'failed ' || f.failed AS failed FROM (SELECT transfer_id FROM economy.transfer_work "
                     "WHERE approved OFFSET $1 LIMIT 1) AS w, "
                     "LATERAL economy.fn_fail_transfer(w.transfer_id, 'test', 'tester') AS f",
                     pg::Params::of(pick(3)), "failed");
    }
    if (what == 16) {
      return counted("cancel",
                     "SELECT c.cancelled::text AS cancelled FROM (SELECT transfer_id FROM economy.transfer_work "
                     "OFFSET $1 LIMIT 1) AS w, LATERAL economy.fn_cancel_transfer(w.transfer_id) AS c",
                     pg::Params::of(pick(10)), "cancelled");
    }
    if (what == 17) {
      return counted(
          "issue",
          fmt::format("SELECT outcome FROM economy.fn_{}($1, $2, $3, 'test', 'tester')", pick(3) > 0 ? "mint" : "burn"),
          pg::Params::of(guild(), member(), 1 + pick(300)));
    }
    if (what == 18) {
      return counted("insert", kInsert, pg::Params::of(guild(), member(), 7, 1 + pick(100)));
    }
    return counted(
        "settings", "SELECT economy.fn_set_settings($1, $2::jsonb, 'test', 'tester')",
        pg::Params::of(guild(),
                       fmt::format(R"({{"cooldown_seconds": {}, "daily_limit": {}, "max_retries": {}}})", pick(2) * 60,
                                   pick(3) == 0 ? "null" : std::to_string(pick(900)), 1 + pick(5))));
  }

  std::mt19937 engine{20240611};
  Theatre theatre{db.dsn()};
  std::map<std::string, int> tally;
};

TEST_F(EconomyRandom, the_books_balance_after_every_round) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (const auto* name : {"a", "b", "c", "d"}) {
    sessions.push_back(std::make_unique<Session>(db.dsn(), name));
    // The same settings as a node's sessions.
    sessions.back()->must(
        "SELECT set_config('enable_seqscan', 'off', false), "
        "set_config('plan_cache_mode', 'force_generic_plan', false)");
  }
  for (std::int64_t m = 1; m <= 6; ++m) {
    for (const auto g : {kGuild, kGuild + 1}) mint(m, 500, g);
  }
  make_government(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<interleaving::Part> parts;
    Order order;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      parts.push_back({*sessions[i], {opening(any()), commit()}});
      order.insert(order.end(), 2, i);
    }
    std::ranges::shuffle(order, engine);
    theatre.play(parts, order);
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
    ASSERT_EQ(audit(), "") << "round " << round << theatre.trace();
    if (pick(2) == 0) pass(fmt::format("{} s", pick(40)));
    if (pick(40) == 0) pass("12 hours");
  }
  // Every accepted transfer is finished or has a time for its next attempt.
  settings(R"({"max_retries": 0, "cooldown_seconds": 0, "daily_limit": null})");
  settings(R"({"max_retries": 0, "cooldown_seconds": 0, "daily_limit": null})", kGuild + 1);
  process();  // early looks at what waited for a cooldown or a limit, which may find that money is missing
  pass("400 s");
  process();
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.transfer_work"), 0);
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.pending_transfers "
                                      "WHERE status NOT IN ('completed', 'rejected')"),
            0);
  EXPECT_EQ(audit(), "");
  for (const auto* each :
       {"created", "completed", "existing", "conflict", "invalid", "insufficient_balance", "cooldown", "daily_limit",
        "retry approved", "retry waiting", "retry denied", "executed", "true", "failed true"}) {
    EXPECT_GE(tally[each], 5) << each << ": not enough happened for this to mean anything";
  }
}

}  // namespace
}  // namespace fencepost::transfer
