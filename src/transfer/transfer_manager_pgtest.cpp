// The economy's parts together on a real database: the answers to callers, and the processing of waiting transfers.
#include <future>

#include <gmock/gmock.h>

#include "pg/error.hpp"
#include "runtime/gather.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/role.hpp"
#include "tests/support/with_pool.hpp"
#include "transfer/economy_test_support.hpp"
#include "transfer/transfer_manager.hpp"

namespace fencepost::transfer {
namespace {

using namespace std::chrono_literals;
using test::eventually;

// "ok", or the error code.
awaitable<std::string> outcome_of(TransferService& service, NewTransfer transfer, Mode mode = Mode::kSync) {
  try {
    const auto outcome = co_await service.transfer_currency(std::move(transfer), mode);
    co_return outcome ? "ok" : outcome.error().code;
  } catch (const pg::QueryError& refused) {
    co_return refused.sqlstate();
  }
}

// The node connects as a member of fencepost_economy_node, as one that does not own the schema.
class TransferManagerTest : public EconomyTest {
 protected:
  explicit TransferManagerTest(const TransferOptions& options = {
                                   .sweep_interval = 60s, .expiry_interval = 100ms, .lane_patience = 200ms}) {
    db.exec("GRANT fencepost_economy_node TO " + role.name());
    launch(options);
  }
  ~TransferManagerTest() override { shut_down(); }

  void launch(const TransferOptions& options) {
    manager.emplace(runtime, database, listener, options, metrics);
    runtime.start();
    runtime.run_on(0, database.start());
    runtime.run_on(0, [](pg::Listener& l, TransferManager& m) -> awaitable<> {
      l.start();
      m.start();
      co_return;
    }(listener, *manager));
  }
  void shut_down() {
    runtime.run_on(0, manager->stop(5s));
    runtime.run_on(0, listener.stop());
    runtime.run_on(0, database.stop(1s));
    runtime.stop();
  }

  NewTransfer wish(std::int64_t from, std::int64_t to, std::int64_t amount) {
    return {.transfer_id = ids.next(), .guild_id = kGuild, .initiator_id = from, .target_id = to, .amount = amount};
  }
  Result<TransferOutcome> ask(NewTransfer transfer, Mode mode) {
    return runtime.run_on(0, manager->service().transfer_currency(std::move(transfer), mode));
  }
  std::string status(const Uuid& id) {
    const auto found = runtime.run_on(0, manager->service().get_transfer_status(id));
    return found ? std::string(kPendingTransfer.name(found->status)) : "none";
  }
  bool becomes(const Uuid& id, const std::string& wanted) {
    return eventually([&] { return status(id) == wanted; }, 20s);
  }
  // Makes all work due at once.
  void try_again() {
    tamper("UPDATE economy.transfer_work SET due_at = clock_timestamp()");
    db.exec("NOTIFY economy_work");
  }
  double metric(const std::string& name) {
    const auto text = metrics.scrape();
    const auto at = text.find(name + " ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size()));
  }
  std::string balance(std::int64_t member) {
    return db.exec(
        fmt::format("SELECT balance FROM economy.accounts WHERE guild_id = {} AND member_id = {}", kGuild, member));
  }

  test::Role role{db, "_node"};
  Runtime runtime{{.threads = 2}};
  Metrics metrics;
  SystemRandom random;
  SystemClock clock;
  UuidGenerator ids{clock, random};
  pg::Database database{runtime, test::connect_options(role.dsn()), {}, metrics};
  pg::Listener listener{runtime.executor(0), database.connector(), {}, metrics};
  std::optional<TransferManager> manager;
};

TEST_F(TransferManagerTest, the_pool_completes_transfers_that_pass_their_checks) {
  mint(1, 100);
  const auto asked = ask(wish(1, 2, 40), Mode::kPool);
  ASSERT_TRUE(asked) << asked.error().to_string();
  const auto accepted = std::get<Accepted>(*asked);
  EXPECT_EQ(accepted.status, TransferStatus::kApproved);
  EXPECT_FALSE(accepted.existing);
  EXPECT_TRUE(becomes(accepted.transfer_id, "completed"));
  EXPECT_EQ(balance(1), "60");
  EXPECT_EQ(balance(2), "40");
}

TEST_F(TransferManagerTest, a_waiting_transfer_completes_after_a_credit_of_either_mode) {
  mint(1, 100);
  const auto poor = std::get<Accepted>(ask(wish(2, 3, 30), Mode::kPool).value());
  const auto poorer = std::get<Accepted>(ask(wish(2, 3, 20), Mode::kPool).value());
  EXPECT_EQ(poor.status, TransferStatus::kChecking);
  ASSERT_TRUE(ask(wish(1, 2, 30), Mode::kSync));
  EXPECT_TRUE(becomes(poor.transfer_id, "completed"));
  ASSERT_TRUE(ask(wish(1, 2, 20), Mode::kPool));
  EXPECT_TRUE(becomes(poorer.transfer_id, "completed"));
  EXPECT_EQ(balance(3), "50");
}

TEST_F(TransferManagerTest, an_insert_by_hand_is_processed_too) {
  mint(1, 100);
  const auto id = Uuid::parse(db.exec(fmt::format("SELECT economy.fn_create_pending_transfer({}, 1, 2, 5)", kGuild)));
  EXPECT_TRUE(becomes(id.value(), "completed"));
}

// After it connects, a listener wakes the coordinator, which finds transfers announced while no session listened.
TEST_F(TransferManagerTest, a_notification_lost_with_its_session_is_made_up_for_on_reconnect) {
  const auto id = std::get<Accepted>(ask(wish(2, 3, 30), Mode::kPool).value()).transfer_id;
  const auto due = [&](const std::string& when) {
    tamper(fmt::format("UPDATE economy.transfer_work SET due_at = {0}, next_attempt_at = {0}", when));
  };
  const auto looks = [&] { return metric("worker_runs_total{result=\"ok\",worker=\"transfer_coordinator\"}"); };
  // The coordinator's timer for the first retry passes; the coordinator looks and finds no transfer that is due soon.
  const auto retry_at = db.exec("SELECT due_at FROM economy.transfer_work");
  due("clock_timestamp() + interval '1 h'");
  ASSERT_TRUE(eventually(
      [&] { return db.exec("SELECT clock_timestamp() > '" + retry_at + "'::timestamptz + interval '0.2 s'") == "t"; }));
  const auto before = looks();
  db.exec("NOTIFY economy_work");
  ASSERT_TRUE(eventually([&] { return looks() > before; }));
  due("clock_timestamp()");  // without a notification
  EXPECT_EQ(db.exec("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND application_name LIKE 'fencepost hears %'"),
            "1");
  EXPECT_TRUE(eventually([&] {
    return runtime.run_on(0, manager->service().get_transfer_status(id)).value().retry_count == 1;
  })) << "the next sweep is a minute away";
}

TEST_F(TransferManagerTest, a_set_rolled_back_by_a_deadlock_is_retried) {
  mint(1, 100);
  mint(2, 100);
  Session psql(db.dsn(), "psql");
  psql.must("SET deadlock_timeout = '20 s'");  // so that the other session detects the deadlock
  psql.must("BEGIN");
  const auto lock = [](std::int64_t member) {
    return fmt::format("SELECT FROM economy.accounts WHERE member_id = {} FOR UPDATE", member);
  };
  psql.must(lock(2));
  auto asked = asio::co_spawn(runtime.loop(0), manager->service().transfer_currency(wish(1, 2, 40), Mode::kSync),
                              asio::use_future);
  ASSERT_TRUE(eventually([&] {
    return admin.value<bool>("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))",
                             pg::Params::of(psql.pid()));
  }));
  psql.must(lock(1));  // in the wrong order
  psql.must("COMMIT");
  const auto outcome = asked.get();
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  EXPECT_EQ(std::get<TransferResult>(*outcome).initiator_balance, 60);
  EXPECT_EQ(db.exec("SELECT deadlocks > 0 FROM pg_stat_database WHERE datname = current_database()"), "t");
}

TEST_F(TransferManagerTest, the_synchronous_mode_answers_with_balances_or_says_why_not) {
  mint(1, 100);
  const auto done = std::get<TransferResult>(ask(wish(1, 2, 40), Mode::kSync).value());
  EXPECT_EQ(done.initiator_balance, 60);
  EXPECT_EQ(done.target_balance, 40);
  EXPECT_GT(done.ledger_id, 0);
  const auto found = runtime.run_on(0, manager->service().get_transfer_status(done.transfer_id));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->mode, Mode::kSync);
  EXPECT_EQ(found->ledger_id, done.ledger_id);

  const auto poor = ask(wish(1, 2, 61), Mode::kSync);
  ASSERT_FALSE(poor);
  EXPECT_EQ(poor.error().code, "insufficient_balance");
  EXPECT_THAT(poor.error().context,
              testing::ElementsAre(testing::Pair("balance", "60"), testing::Pair("required", "61")));

  settings(R"({"cooldown_seconds": 300})");
  ASSERT_TRUE(ask(wish(1, 2, 1), Mode::kSync).error().code == "cooldown");
  settings(R"({"cooldown_seconds": 0})");
  settings(R"({"daily_limit": 41})");
  const auto limited = ask(wish(1, 2, 2), Mode::kSync);
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().code, "daily_limit");
  EXPECT_THAT(limited.error().context, testing::ElementsAre(testing::Pair("used", "40"), testing::Pair("limit", "41")));
  EXPECT_EQ(ask(wish(1, 1, 2), Mode::kSync).error().code, "invalid_transfer");
}

TEST_F(TransferManagerTest, one_key_is_one_transfer_in_both_modes) {
  mint(1, 100);
  auto first = wish(1, 2, 10);
  first.idempotency_key = "once";
  const auto pooled = std::get<Accepted>(ask(first, Mode::kPool).value());
  ASSERT_TRUE(becomes(pooled.transfer_id, "completed"));
  auto again = first;
  again.transfer_id = ids.next();
  const auto existing = ask(again, Mode::kSync);
  ASSERT_TRUE(existing);
  EXPECT_EQ(std::get<TransferResult>(*existing).transfer_id, pooled.transfer_id);
  EXPECT_TRUE(std::get<TransferResult>(*existing).existing);
  again.amount = 11;
  EXPECT_EQ(ask(again, Mode::kSync).error().code, "idempotency_conflict");
  EXPECT_EQ(ask(again, Mode::kPool).error().code, "idempotency_conflict");
  EXPECT_EQ(balance(1), "90");
}

TEST_F(TransferManagerTest, concurrent_requests_share_transactions_and_a_bad_one_fails_alone) {
  mint(1, 1000);
  std::vector<awaitable<std::string>> tasks;
  for (int i = 0; i < 200; ++i) {
    auto transfer = wish(1, 2 + i % 5, 1);
    if (i == 77) transfer.reason = std::string(501, 'x');  // longer than the table allows
    tasks.push_back(outcome_of(manager->service(), std::move(transfer)));
  }
  const auto results = runtime.run_on(0, gather(std::move(tasks)));
  EXPECT_EQ(std::ranges::count(results, "ok"), 199);
  EXPECT_EQ(results[77], "23514");
  EXPECT_EQ(balance(1), "801");
}

TEST_F(TransferManagerTest, only_waiting_transfers_can_be_cancelled) {
  mint(1, 10);
  const auto waits = std::get<Accepted>(ask(wish(1, 2, 11), Mode::kPool).value());
  const auto cancelled = runtime.run_on(0, manager->service().cancel(waits.transfer_id));
  ASSERT_TRUE(cancelled) << cancelled.error().to_string();
  EXPECT_EQ(cancelled->status, TransferStatus::kRejected);
  EXPECT_EQ(cancelled->denied_reason, "transfer_cancelled");
  const auto code = [&](const Uuid& id) { return runtime.run_on(0, manager->service().cancel(id)).error().code; };
  EXPECT_EQ(code(waits.transfer_id), "not_cancellable");
  EXPECT_EQ(code(std::get<TransferResult>(ask(wish(1, 2, 1), Mode::kSync).value()).transfer_id), "not_cancellable");
  EXPECT_EQ(code(ids.next()), "no_such_transfer");
}

TEST_F(TransferManagerTest, an_expired_transfer_is_rejected) {
  const auto id = std::get<Accepted>(ask(wish(1, 2, 5), Mode::kPool).value()).transfer_id;
  tamper(
      fmt::format("UPDATE economy.pending_transfers SET expires_at = clock_timestamp() - interval '1 s' WHERE "
                  "transfer_id = '{0}'; UPDATE economy.transfer_work SET expires_at = clock_timestamp() - interval '1 "
                  "s' WHERE transfer_id = '{0}'",
                  id.to_string()));
  EXPECT_TRUE(becomes(id, "rejected"));
  EXPECT_EQ(runtime.run_on(0, manager->service().get_transfer_status(id))->denied_reason, "transfer_checks_expired");
}

// A transfer that PostgreSQL refuses for an unforeseen reason is deferred, and the others of its set continue.
TEST_F(TransferManagerTest, a_transfer_that_makes_its_set_fail_is_deferred_alone) {
  mint(1, 100);
  db.exec("ALTER TABLE economy.transactions ADD CONSTRAINT not_thirteen CHECK (amount <> 13)");
  std::vector<Uuid> good;
  Uuid bad;
  for (const std::int64_t amount : {1, 2, 13, 3, 4}) {
    const auto id = std::get<Accepted>(ask(wish(1, 2, amount), Mode::kPool).value()).transfer_id;
    if (amount == 13) {
      bad = id;
    } else {
      good.push_back(id);
    }
  }
  for (const auto& id : good) EXPECT_TRUE(becomes(id, "completed"));
  EXPECT_EQ(status(bad), "approved");
  EXPECT_TRUE(eventually([&] {
    return db.exec(fmt::format("SELECT due_at > clock_timestamp() + interval '30 s' FROM economy.transfer_work WHERE "
                               "transfer_id = '{}'",
                               bad.to_string())) == "t";
  }));
}

TEST_F(TransferManagerTest, a_transfer_that_cannot_be_executed_is_rejected_at_the_tenth_integrity_error) {
  mint(1, 100);
  db.exec("ALTER TABLE economy.transactions ADD CONSTRAINT not_thirteen CHECK (amount <> 13)");
  const auto id = std::get<Accepted>(ask(wish(1, 2, 13), Mode::kPool).value()).transfer_id;
  const auto tries = [&] {
    return db.exec(
        fmt::format("SELECT coalesce((SELECT execute_tries FROM economy.transfer_work WHERE transfer_id = "
                    "'{}'), 10)",
                    id.to_string()));
  };
  for (int i = 1; i <= 10; ++i) {
    EXPECT_TRUE(eventually([&] { return tries() == std::to_string(i); })) << i;
    if (i < 10) EXPECT_EQ(status(id), "approved");
    tamper("UPDATE economy.transfer_work SET due_at = clock_timestamp()");
    db.exec("NOTIFY economy_work");
  }
  EXPECT_TRUE(becomes(id, "rejected"));
  EXPECT_EQ(runtime.run_on(0, manager->service().get_transfer_status(id))->denied_reason, "transfer_failed");
  EXPECT_EQ(account(1), "100/0");
  EXPECT_EQ(metric("transfer_pool_outcomes_total{outcome=\"failed\"}"), 1);
  EXPECT_EQ(audit(), "");
}

// The partition of the log is missing, an operator's problem: the transfer completes when it is there.
TEST_F(TransferManagerTest, an_execution_that_fails_for_want_of_a_partition_does_not_count) {
  mint(1, 100);
  db.exec("ALTER TABLE economy.transactions ADD CONSTRAINT not_thirteen CHECK (amount <> 13)");
  const auto id = std::get<Accepted>(ask(wish(1, 2, 13), Mode::kPool).value()).transfer_id;
  const auto work = [&](const std::string& what) { return db.exec("SELECT " + what + " FROM economy.transfer_work"); };
  ASSERT_TRUE(eventually([&] { return work("execute_tries") == "1"; }));
  const auto partitions = "pg_partition_tree('event') AS t WHERE t.isleaf";
  const auto detach = db.exec(
      fmt::format("SELECT string_agg('ALTER TABLE event DETACH PARTITION ' || relid::text, ';') FROM {}", partitions));
  const auto attach = db.exec(fmt::format(
      "SELECT string_agg('ALTER TABLE event ATTACH PARTITION ' || relid::text || ' ' || "
      "pg_get_expr(c.relpartbound, c.oid), ';') FROM pg_partition_tree('event') AS t JOIN pg_class AS c ON c.oid = "
      "t.relid WHERE t.isleaf"));
  db.exec("ALTER TABLE economy.transactions DROP CONSTRAINT not_thirteen; " + detach);
  for (int i = 0; i < 3; ++i) {
    tamper("UPDATE economy.transfer_work SET due_at = clock_timestamp()");
    db.exec("NOTIFY economy_work");
    ASSERT_TRUE(eventually([&] { return work("due_at > clock_timestamp() + interval '30 s'") == "t"; }));
    EXPECT_EQ(work("execute_tries"), "1");
  }
  db.exec(attach);
  tamper("UPDATE economy.transfer_work SET due_at = clock_timestamp()");
  db.exec("NOTIFY economy_work");
  EXPECT_TRUE(becomes(id, "completed"));
}

// The ledger's primary key comes from a sequence, which a restore may leave behind its table.
TEST_F(TransferManagerTest, an_execution_that_fails_for_a_lagging_sequence_does_not_count) {
  mint(1, 100);
  ASSERT_TRUE(ask(wish(1, 2, 1), Mode::kSync));
  db.exec("ALTER TABLE economy.transactions ADD CONSTRAINT not_thirteen CHECK (amount <> 13)");
  const auto id = std::get<Accepted>(ask(wish(1, 2, 13), Mode::kPool).value()).transfer_id;
  const auto work = [&](const std::string& what) { return db.exec("SELECT " + what + " FROM economy.transfer_work"); };
  ASSERT_TRUE(eventually([&] { return work("execute_tries") == "1"; }));
  db.exec("ALTER TABLE economy.transactions DROP CONSTRAINT not_thirteen");
  db.exec("SELECT setval('economy.transactions_id_seq', 1, false)");
  try_again();
  ASSERT_TRUE(eventually([&] { return work("due_at > clock_timestamp() + interval '30 s'") == "t"; }));
  EXPECT_EQ(work("execute_tries"), "1");
  db.exec("SELECT setval('economy.transactions_id_seq', 100)");
  try_again();
  EXPECT_TRUE(becomes(id, "completed"));
  EXPECT_EQ(audit(), "");
}

// A trigger of the ledger fails as the server would.
TEST_F(TransferManagerTest, an_execution_that_a_retry_may_cure_does_not_count) {
  mint(1, 100);
  db.exec(R"(
    CREATE TABLE public.failure (sqlstate text);
    INSERT INTO public.failure VALUES ('23000');
    CREATE SEQUENCE public.attempts;
    CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    DECLARE v_sqlstate text := (SELECT sqlstate FROM public.failure);
    BEGIN
      PERFORM nextval('public.attempts');
      IF v_sqlstate = 'killed' THEN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10); END IF;
      IF v_sqlstate = 'cancelled' THEN PERFORM pg_cancel_backend(pg_backend_pid()); PERFORM pg_sleep(10); END IF;
      IF v_sqlstate IS NOT NULL THEN RAISE EXCEPTION 'fails' USING ERRCODE = v_sqlstate; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER fail BEFORE INSERT ON economy.transactions FOR EACH ROW EXECUTE FUNCTION public.fail())");
  const auto attempts = [&] { return std::stoi(db.exec("SELECT last_value FROM public.attempts")); };
  const auto tries = [&] { return db.exec("SELECT execute_tries FROM economy.transfer_work"); };
  const auto id = std::get<Accepted>(ask(wish(1, 2, 13), Mode::kPool).value()).transfer_id;
  ASSERT_TRUE(eventually([&] { return tries() == "1"; })) << "an integrity error counts";
  for (const auto* failure : {"40P01", "53100", "55P03", "cancelled", "killed"}) {
    db.exec(fmt::format("UPDATE public.failure SET sqlstate = '{}'", failure));
    // A set that is refused because of a lock is tried without waiting, and each of its transfers alone.
    const auto handled = attempts() + (failure == std::string_view("55P03") ? 5 : 2);
    EXPECT_TRUE(eventually([&] {
      try_again();
      return attempts() >= handled;
    })) << failure;
    EXPECT_EQ(tries(), "1") << failure;
    EXPECT_EQ(status(id), "approved") << failure;
  }
  db.exec("UPDATE public.failure SET sqlstate = NULL");
  EXPECT_TRUE(eventually([&] {
    try_again();
    return status(id) == "completed";
  }));
  EXPECT_EQ(audit(), "");
}

// One transfer in a set, so that many transfers are many sets.
class TransferLanes : public TransferManagerTest {
 protected:
  TransferLanes()
      : TransferManagerTest({.batch = 1, .sweep_interval = 60s, .expiry_interval = 100ms, .lane_patience = 1s}) {
    mint(1, 100);
  }

  void create_many(int n) {
    for (int i = 0; i < n; ++i) ASSERT_TRUE(ask(wish(1, 2, 1), Mode::kPool));
  }
  bool all_complete() {
    return eventually([&] { return db.exec("SELECT count(*) FROM economy.transfer_work") == "0"; }, 20s);
  }
  bool works_without_lanes() { return metric("\nfencepost_transfer_pool_without_lanes") == 1; }
};

constexpr std::string_view kKeepLanes = "SELECT count(*) FROM (SELECT FROM economy.transfer_lanes FOR UPDATE) AS l";

// Its session is in a transaction and waits for a client that says nothing more.
TEST_F(TransferLanes, a_stopped_node_does_not_keep_them) {
  db.exec("GRANT SELECT, UPDATE ON economy.transfer_lanes TO " + role.name());
  Session stopped(role.dsn(), "stopped");
  stopped.must("BEGIN");
  stopped.must(kKeepLanes);
  create_many(3);
  EXPECT_TRUE(all_complete());
  EXPECT_THROW(stopped.ask("SELECT 1"), Exception) << "the session was terminated";
  EXPECT_FALSE(works_without_lanes());
}

TEST_F(TransferLanes, that_a_session_of_another_role_keeps_stop_nothing) {
  Session other(db.dsn(), "other");
  other.must("BEGIN");
  other.must(kKeepLanes);
  create_many(40);
  EXPECT_TRUE(all_complete()) << "one set in each second would take longer";
  EXPECT_TRUE(works_without_lanes());
  EXPECT_EQ(other.ask("SELECT 1").sqlstate, "") << "the node may not end its session";
  other.must("COMMIT");
  EXPECT_TRUE(eventually([&] {
    db.exec("NOTIFY economy_work");
    return !works_without_lanes();
  }));
}

// A lane is a row that only nodes may lock. Advisory locks, which any role may take, mean nothing.
TEST_F(TransferLanes, cannot_be_kept_by_a_role_that_may_pay) {
  const test::Role payer(db, "_payer");
  db.exec("GRANT fencepost_economy_user TO " + payer.name());
  Session session(payer.dsn(), "payer");
  EXPECT_EQ(session.ask(kKeepLanes).sqlstate, "42501");
  EXPECT_EQ(session.ask("SELECT economy.fn_process_due(1, p_hold_lanes => true)").sqlstate, "42501");
  session.must("SELECT pg_advisory_lock(1953652325, n) FROM generate_series(0, 63) AS n");
  create_many(5);
  EXPECT_TRUE(all_complete());
  EXPECT_FALSE(works_without_lanes());
}

// A psql session does not commit a cancel. All that is due is locked, and every lane is free.
TEST_F(TransferLanes, are_held_while_a_session_keeps_the_rows_of_transfers) {
  ASSERT_TRUE(ask(wish(5, 2, 1), Mode::kPool));
  Session psql(db.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("SELECT economy.fn_cancel_transfer(transfer_id) FROM economy.transfer_work");
  Session credit(db.dsn(), "credit");
  credit.must("SELECT economy.fn_mint(7, 5, 1, 'test', 'tester')");  // leaves a reminder
  const auto looks = [&] { return metric("worker_runs_total{result=\"ok\",worker=\"transfer_coordinator\"}"); };
  const auto before = looks();
  ASSERT_TRUE(eventually([&] { return looks() > before + 20; })) << "each look is 0.1 s after the last";
  EXPECT_FALSE(works_without_lanes());
  psql.must("ROLLBACK");
  EXPECT_TRUE(all_complete());
}

// The commits of synchronous transfers send no notification.
TEST_F(TransferManagerTest, the_readers_of_events_hear_of_a_synchronous_transfer) {
  mint(1, 100);
  Ear log(db.dsn(), "event_log");
  log.take();
  ASSERT_TRUE(ask(wish(1, 2, 1), Mode::kSync));
  EXPECT_TRUE(eventually([&] { return !log.take().empty(); }));
}

// Another session opens an account and does not commit.
TEST_F(TransferManagerTest, an_account_that_another_session_is_just_opening_delays_only_transfers_to_it) {
  mint(1, 100);
  Session psql(db.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("INSERT INTO economy.accounts (guild_id, member_id) VALUES (7, 777)");
  const auto refused = ask(wish(1, 777, 1), Mode::kSync);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "account_locked");
  EXPECT_TRUE(ask(wish(1, 778, 1), Mode::kSync)) << "this one is opened at once";
  psql.must("COMMIT");
  EXPECT_TRUE(ask(wish(1, 777, 1), Mode::kSync));
}

// A credit finds the waiting transfer locked by a transaction that is then rolled back.
TEST_F(TransferManagerTest, what_a_credit_skipped_is_looked_at_as_soon_as_the_lock_is_gone) {
  mint(3, 100);
  const auto id = std::get<Accepted>(ask(wish(1, 2, 50), Mode::kPool).value()).transfer_id;
  tamper("UPDATE economy.transfer_work SET due_at = '9000-01-01', next_attempt_at = '9000-01-01'");
  Session psql(db.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("SELECT FROM economy.fn_cancel_transfer($1)", pg::Params::of(id));
  ASSERT_TRUE(ask(wish(3, 1, 50), Mode::kSync));
  psql.must("ROLLBACK");
  EXPECT_TRUE(becomes(id, "completed")) << "the next sweep is a minute away";
}

// A psql session does not commit.
TEST_F(TransferManagerTest, a_lock_of_another_session_delays_only_transfers_of_that_account) {
  constexpr int kEach = 150;
  mint(1, 10'000);
  mint(2, 10'000);
  Session psql(db.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("SELECT FROM economy.accounts WHERE member_id = 2 FOR UPDATE");
  const auto began = std::chrono::steady_clock::now();
  const auto all = [&](Mode mode, std::int64_t to) {
    std::vector<std::future<std::string>> outcomes;
    outcomes.reserve(kEach);
    for (int i = 0; i < kEach; ++i) {
      outcomes.push_back(
          asio::co_spawn(runtime.loop(0), outcome_of(manager->service(), wish(1, to, 1), mode), asio::use_future));
    }
    return outcomes;
  };
  auto kept = all(Mode::kSync, 2);
  auto free = all(Mode::kSync, 3);
  for (auto& one : kept) EXPECT_EQ(one.get(), "account_locked");
  for (auto& one : free) EXPECT_EQ(one.get(), "ok");
  // In the pool this transfer waits for the lock, and no other transfer does.
  auto waiting = all(Mode::kPool, 2);
  auto going = all(Mode::kPool, 3);
  for (auto& one : waiting) EXPECT_EQ(one.get(), "ok");
  for (auto& one : going) EXPECT_EQ(one.get(), "ok");
  const auto stand = [&](std::int64_t to, const std::string& status) {
    return db.exec(fmt::format("SELECT count(*) FROM economy.pending_transfers WHERE target_id = {} AND status = '{}'",
                               to, status));
  };
  EXPECT_TRUE(eventually([&] { return stand(3, "completed") == std::to_string(kEach); }));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s) << "one wait for each transfer would have taken minutes";
  EXPECT_EQ(stand(2, "approved"), std::to_string(kEach));
  EXPECT_GT(metric("transfer_pool_outcomes_total{outcome=\"put_off\"}"), 0);
  EXPECT_EQ(db.exec("SELECT max(execute_tries) FROM economy.transfer_work"), "0") << "a wait is no failed execution";
  psql.must("COMMIT");
  EXPECT_TRUE(eventually([&] { return stand(2, "completed") == std::to_string(kEach); }));
  EXPECT_EQ(balance(2), std::to_string(10'000 + kEach));
  EXPECT_EQ(audit(), "");
}

}  // namespace
}  // namespace fencepost::transfer
