// Executing: approved transfers become ledger rows, as sets, in order, exactly once.
#include "tests/support/eventually.hpp"
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

class Process : public EconomyTest {
 protected:
  Texts ledger() {
    return column(admin.must("SELECT debit_id || '>' || credit_id || ' ' || amount || ' ' || debit_after || ' ' || "
                             "credit_after AS t FROM economy.transactions WHERE kind = 'transfer' ORDER BY id"),
                  "t");
  }
  static std::string counts(const pg::ResultSet& rows) {
    return fmt::format("{} claimed, {} completed, more {}, busy {}", rows.one().get<int>("claimed"),
                       rows.one().get<int>("completed"), rows.one().get<std::string>("more"),
                       rows.one().get<std::string>("busy"));
  }
};

TEST_F(Process, completes_with_the_ledger_row_and_the_event) {
  mint(1, 100);
  const auto id =
      admin.value<Uuid>("SELECT economy.fn_create_pending_transfer(7, 1, 2, 30, '{\"note\": 1}', p_reason => 'rent')");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(id), "completed");
  EXPECT_EQ(account(1), "70/0");
  EXPECT_EQ(account(2), "30/0");
  EXPECT_EQ(outbox(id), (Texts{"TransferApproved", "TransferCompleted"}));
  const auto row =
      admin.must("SELECT reason, id AS ledger FROM economy.transactions WHERE transfer_id = $1", pg::Params::of(id));
  EXPECT_EQ(row.one().get<std::string>("reason"), "rent");
  const auto data = admin.value<boost::json::value>("SELECT data FROM event WHERE type = 'TransferCompleted'");
  EXPECT_EQ(data, boost::json::parse(fmt::format(
                      R"({{"transferId": "{}", "guildId": "7", "initiatorId": "1", "targetId": "2", "amount": "30",
                           "ledgerId": "{}"}})",
                      id.to_string(), row.one().get<std::string>("ledger"))));
  EXPECT_EQ(audit(), "");
}

TEST_F(Process, leaves_running_balances_also_where_an_account_pays_and_is_paid) {
  mint(1, 100);
  mint(2, 100);
  mint(3, 100);
  create({{1, 2, 10}, {2, 3, 20}, {3, 1, 30}, {1, 3, 40}, {2, 1, 50}});
  EXPECT_EQ(process(), 5);
  EXPECT_EQ(ledger(), (Texts{"1>2 10 90 110", "2>3 20 90 120", "3>1 30 90 120", "1>3 40 80 130", "2>1 50 40 130"}));
  EXPECT_EQ(account(1), "130/0");
  EXPECT_EQ(account(2), "40/0");
  EXPECT_EQ(account(3), "130/0");
  EXPECT_EQ(audit(), "");
}

TEST_F(Process, takes_at_most_the_limit_and_says_that_there_is_more) {
  mint(1, 100);
  create({{1, 2, 1}, {1, 2, 2}, {1, 2, 3}, {1, 2, 4}, {1, 2, 5}});
  const auto take = [&] { return counts(admin.must("SELECT * FROM economy.fn_process_due(2)")); };
  EXPECT_EQ(take(), "2 claimed, 2 completed, more t, busy f");
  EXPECT_EQ(take(), "2 claimed, 2 completed, more t, busy f");
  EXPECT_EQ(take(), "1 claimed, 1 completed, more f, busy f");
  EXPECT_EQ(take(), "0 claimed, 0 completed, more f, busy f");
  EXPECT_EQ(ledger(), (Texts{"1>2 1 99 1", "1>2 2 97 3", "1>2 3 94 6", "1>2 4 90 10", "1>2 5 85 15"}));
}

TEST_F(Process, says_when_something_is_due_next) {
  EXPECT_TRUE(admin.must(kProcess).one().is_null("next_due_at"));
  insert(1, 2, 5);
  insert(1, 2, 5);
  tamper("UPDATE economy.transfer_work SET due_at = due_at + interval '1 day' WHERE seq = 1");
  EXPECT_EQ(admin.must(kProcess).one().get<std::string>("next_due_at"),
            admin.value<std::string>("SELECT min(due_at) FROM economy.transfer_work"));
}

TEST_F(Process, one_session_at_a_time_processes_a_guild) {
  settings(R"({"cooldown_seconds": 0, "daily_limit": null})", 8);
  mint(1, 100);
  mint(1, 100, 8);
  create({{1, 2, 1}, {1, 2, 2}, {.from = 1, .to = 2, .amount = 3, .guild = 8}});
  tamper("UPDATE economy.transfer_work SET due_at = due_at - interval '1 s' WHERE guild_id = 7");
  Session other(db.dsn(), "other");
  other.must("BEGIN");
  const auto take = [](Session& node, int limit) {
    return counts(node.must("SELECT * FROM economy.fn_process_due($1, p_hold_lanes => true)", pg::Params::of(limit)));
  };
  EXPECT_EQ(take(other, 1), "1 claimed, 1 completed, more t, busy f");
  EXPECT_EQ(take(admin, 100), "1 claimed, 1 completed, more f, busy t") << "the transfer of the other guild";
  EXPECT_TRUE(admin.must("SELECT * FROM economy.fn_process_due(9, p_hold_lanes => true)").one().get<bool>("lane_busy"));
  EXPECT_EQ(admin.value<int>("SELECT pid FROM economy.fn_lane_holders()"), other.pid());
  other.must("COMMIT");
  EXPECT_EQ(take(admin, 100), "1 claimed, 1 completed, more f, busy f");
  EXPECT_EQ(audit(), "");
}

// A guild other than kGuild in the same lane.
constexpr std::string_view kNeighbour =
    "SELECT g FROM generate_series(8, 10000) AS g WHERE economy._lane(g) = economy._lane(7) LIMIT 1";

// A psql session forgets its COMMIT: the nodes go on with the other guilds of the lane.
TEST_F(Process, an_open_transaction_of_another_session_never_holds_a_lane) {
  const auto neighbour = admin.value<std::int64_t>(kNeighbour);
  settings(R"({"cooldown_seconds": 0, "daily_limit": null})", neighbour);
  mint(1, 100);
  mint(1, 100, neighbour);
  Session psql(db.dsn(), "psql");
  for (const std::string forgotten :
       {R"(SELECT economy.fn_set_settings(7, '{"daily_limit": 50}', 'test', 'tester'))",
        "SELECT economy.fn_set_account_kind(7, 1, 'member', 'test', 'tester')", "SELECT economy.fn_process_due(1)"}) {
    insert(1, 2, 1);
    tamper("UPDATE economy.transfer_work SET due_at = due_at - interval '1 s'");
    psql.must("BEGIN");
    psql.must(forgotten);
    create({{.from = 1, .to = 2, .amount = 1, .guild = neighbour}});
    admin.must("SET lock_timeout = '5s'");
    const auto done = admin.must("SELECT * FROM economy.fn_process_due(100, NULL, false, true)");
    EXPECT_GE(done.one().get<int>("completed"), 1) << forgotten;
    EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.transfer_work WHERE guild_id = $1",
                                        pg::Params::of(neighbour)),
              0)
        << forgotten;
    psql.must("COMMIT");
    pass("3 s");
    process();
  }
  EXPECT_EQ(account(2, neighbour), "3/0");
  EXPECT_EQ(account(2), "3/0");
  EXPECT_EQ(audit(), "");
}

TEST_F(Process, a_lane_whose_due_work_is_locked_is_not_taken_by_another_session) {
  mint(1, 100);
  insert(1, 2, 1);
  Session psql(db.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("SELECT FROM economy.transfer_work FOR UPDATE");
  const auto done = admin.must("SELECT * FROM economy.fn_process_due(100, p_hold_lanes => true)");
  EXPECT_TRUE(done.one().get<bool>("busy"));
  EXPECT_FALSE(done.one().get<bool>("lane_busy"));
  EXPECT_EQ(admin.must("SELECT FROM economy.fn_lane_holders()").size(), 0U);
}

TEST_F(Process, can_be_limited_to_given_transfers) {
  mint(1, 100);
  const auto rows = create({{1, 2, 1}, {1, 2, 2}, {1, 2, 3}});
  const std::vector<Uuid> only{rows[1].get<Uuid>("transfer_id")};
  EXPECT_EQ(admin.must("SELECT * FROM economy.fn_process_due(100, $1)", pg::Params::of(only))
                .one()
                .get<std::int64_t>("completed"),
            1);
  EXPECT_EQ(ledger(), Texts{"1>2 2 98 2"});
}

// Such a transfer should not exist; if it does, it must not stop the others.
TEST_F(Process, a_transfer_that_cannot_be_executed_fails_alone_and_is_deferred) {
  mint(1, 100);
  const auto bad = insert(1, 2, 10);
  const auto good = insert(1, 2, 20);
  tamper(
      "INSERT INTO economy.transactions (transfer_id, kind, guild_id, debit_id, credit_id, amount, debit_after, "
      "credit_after) SELECT transfer_id, 'burn', 7, 9, 0, 1, 0, 0 FROM economy.pending_transfers WHERE amount = 10");
  EXPECT_EQ(admin.ask(kProcess).sqlstate, "23505");
  constexpr std::string_view kOnly = "SELECT * FROM economy.fn_process_due(100, $1)";
  EXPECT_EQ(admin.ask(kOnly, pg::Params::of(std::vector{bad})).sqlstate, "23505");
  EXPECT_EQ(admin.ask(kOnly, pg::Params::of(std::vector{good})).sqlstate, "");
  EXPECT_TRUE(admin.value<bool>("SELECT economy.fn_defer_transfer($1, 60)", pg::Params::of(bad)));
  EXPECT_EQ(process(), 0);
  EXPECT_EQ(state(bad), "approved");
  EXPECT_EQ(state(good), "completed");
}

TEST_F(Process, a_transfer_is_not_executed_twice_when_its_work_is_still_there) {
  mint(1, 100);
  const auto id = insert(1, 2, 10);
  admin.must("CREATE TABLE kept AS SELECT * FROM economy.transfer_work");
  EXPECT_EQ(process(), 1);
  tamper("INSERT INTO economy.transfer_work SELECT * FROM kept");
  admin.ask(kProcess);
  EXPECT_EQ(state(id), "completed");
  EXPECT_EQ(account(1), "90/0");
  EXPECT_EQ(ledger().size(), 1U);
}

TEST_F(Process, reports_the_state_of_the_pool) {
  mint(1, 100);
  const auto approved = insert(1, 2, 10);
  const auto waiting = insert(1, 2, 1000);
  const auto rows = admin.must(
      "SELECT *, oldest_waiting_at = (SELECT created_at FROM economy.pending_transfers WHERE transfer_id = $1) AS it "
      "FROM economy.fn_pool_state()",
      pg::Params::of(waiting));
  EXPECT_EQ(rows.one().get<int>("waiting"), 1);
  EXPECT_EQ(rows.one().get<int>("approved"), 1);
  EXPECT_EQ(rows.one().get<int>("due"), 1);
  EXPECT_EQ(rows.one().get<int>("retries_due"), 0);
  EXPECT_TRUE(rows.one().get<bool>("it"));
  EXPECT_EQ(rows.one().get<Uuid>("oldest_approved_id"), approved);
  pass("1 h");
  EXPECT_EQ(admin.value<int>("SELECT retries_due FROM economy.fn_pool_state()"), 1);
}

// A guild with a large backlog does not delay another guild.
TEST_F(Process, every_lane_gets_its_share) {
  settings(R"({"cooldown_seconds": 0, "daily_limit": null})", 8);
  mint(1, 100);
  mint(1, 100, 8);
  create({{1, 2, 1}, {1, 2, 1}, {1, 2, 1}, {1, 2, 1}, {1, 2, 1}, {1, 2, 1}});
  create({{.from = 1, .to = 2, .amount = 1, .guild = 8}});
  EXPECT_EQ(counts(admin.must("SELECT * FROM economy.fn_process_due(4)")), "3 claimed, 3 completed, more t, busy f");
  EXPECT_EQ(account(2, 8), "1/0");
  EXPECT_EQ(account(2), "2/0");
  EXPECT_EQ(counts(admin.must("SELECT * FROM economy.fn_process_due(4)")), "4 claimed, 4 completed, more t, busy f");
}

TEST_F(Process, needs_a_limit) {
  for (const auto* limit : {"0", "-1", "NULL"}) {
    EXPECT_EQ(admin.ask(fmt::format("SELECT economy.fn_process_due({})", limit)).sqlstate, "22023") << limit;
  }
}

// A psql session does not commit: it has locked one account and is creating another.
TEST_F(Process, without_waiting_it_skips_accounts_locked_by_another_session) {
  mint(1, 100);
  mint(2, 100);
  mint(3, 100);
  Session psql(db.dsn(), "psql");
  psql.must("BEGIN");
  psql.must(kInsert, pg::Params::of(kGuild, 2, 9, 1));
  psql.must(kInsert, pg::Params::of(kGuild, 4, 9, 1));
  const std::vector<Wish> wishes{{1, 2, 1}, {1, 3, 2}, {3, 4, 3}, {3, 1, 4}, {2, 1, 5}, {1, 1, 6}};
  admin.must("SET lock_timeout = '100ms'");
  EXPECT_EQ(admin.ask(kNow, now_params(wishes)).sqlstate, "55P03");
  const std::string impatient = "SELECT * FROM economy.fn_transfer_now($1, $2, $3, $4, $5, $6, $7, $8, false)";
  EXPECT_EQ(column(admin.must(impatient, now_params(wishes)), "outcome"),
            (Texts{"kept", "completed", "kept", "completed", "kept", "invalid"}));
  // Creating a pool transfer needs the payer unlocked; completing it needs payer and payee unlocked.
  EXPECT_EQ(admin.ask(kCreate, create_params(wishes)).sqlstate, "55P03");
  const std::string create =
      "SELECT * FROM economy.fn_create_pending_transfers($1, $2, $3, $4, $5, $6, $7, $8, $9, false)";
  const auto created = admin.must(create, create_params(wishes));
  EXPECT_EQ(column(created, "outcome"), (Texts{"created", "created", "created", "created", "kept", "invalid"}));
  EXPECT_EQ(admin.ask(kProcess).sqlstate, "55P03");
  const auto rows = admin.must("SELECT * FROM economy.fn_process_due(100, NULL, false)");
  const auto done = rows.one();
  EXPECT_EQ(done.get<int>("completed"), 2);
  EXPECT_EQ(done.get<int>("put_off"), 2);
  EXPECT_FALSE(done.get<bool>("more"));
  EXPECT_FALSE(done.is_null("next_due_at"));
  EXPECT_EQ(state(created[0].get<Uuid>("transfer_id")), "approved");
  EXPECT_EQ(state(created[1].get<Uuid>("transfer_id")), "completed");
  psql.must("COMMIT");
  pass("3 s");
  EXPECT_EQ(process(), 4) << "the deferred transfers, and that of the psql session";
  EXPECT_EQ(audit(), "");
}

// An account that is locked only briefly is waited for. A skipped item does not use up its key.
TEST_F(Process, without_waiting_it_still_waits_for_short_locks) {
  for (const std::int64_t member : {1, 2, 3}) mint(member, 100);
  Session psql(db.dsn(), "psql");
  Session other(db.dsn(), "node");
  Session watcher(db.dsn(), "watcher");
  const auto lock = [](std::int64_t member) {
    return fmt::format("SELECT FROM economy.accounts WHERE member_id = {} FOR NO KEY UPDATE", member);
  };
  psql.must("BEGIN");
  psql.must(lock(2));
  const std::vector<Wish> wishes{{.from = 1, .to = 2, .amount = 1, .key = "k"},
                                 {.from = 1, .to = 3, .amount = 2, .key = "k"},
                                 {.from = 1, .to = 3, .amount = 3}};
  admin.must("SET lock_timeout = '7s'");
  // The lock is short, and this process is sometimes too slow to meet it.
  EXPECT_TRUE(test::eventually([&] {
    other.must("BEGIN");
    other.must(lock(3));
    admin.must("BEGIN");
    admin.send("SELECT * FROM economy.fn_transfer_now($1, $2, $3, $4, $5, $6, $7, $8, false)", now_params(wishes));
    const auto waits = [&] {
      return watcher.value<bool>("SELECT cardinality(pg_blocking_pids($1)) > 0", pg::Params::of(admin.pid()));
    };
    while (!admin.finished() && !waits()) {
    }
    other.must("COMMIT");
    const auto outcomes = column(admin.take().rows, "outcome");
    EXPECT_EQ(admin.value<std::string>("SHOW lock_timeout"), "7s") << "lock_timeout must be restored";
    admin.must("COMMIT");
    return outcomes == Texts{"kept", "completed", "completed"};
  }));
  EXPECT_EQ(audit(), "");
}

}  // namespace
}  // namespace fencepost::transfer
