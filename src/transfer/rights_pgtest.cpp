// What each role may do in the economy, and that it cannot do more by a detour.
#include "tests/support/eventually.hpp"
#include "tests/support/role.hpp"
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

using test::Role;

constexpr std::string_view kInsufficientPrivilege = "42501";

class Rights : public EconomyTest {
 protected:
  void SetUp() override {
    EconomyTest::SetUp();
    db.exec("GRANT fencepost_economy_user TO " + user_role.name());
    db.exec("GRANT fencepost_economy_operator TO " + operator_role.name());
    db.exec("GRANT fencepost_economy_node TO " + node_role.name());
    mint(1, 1'000);
  }

  // Each statement must be refused for lack of the right, and nothing else.
  void expect_refused(Session& session, const std::vector<std::string>& statements) {
    for (const auto& sql : statements) {
      const auto answer = session.ask(sql);
      EXPECT_EQ(answer.sqlstate, kInsufficientPrivilege) << sql << ": " << answer.message;
    }
  }

  Role user_role{db, "_user"};
  Role operator_role{db, "_operator"};
  Role node_role{db, "_node"};
  Role plain_role{db, "_plain"};
  Session user{user_role.dsn(), "user"};
  Session op{operator_role.dsn(), "operator"};
  Session node{node_role.dsn(), "node"};
};

TEST_F(Rights, a_user_creates_reads_checks_and_cancels) {
  const auto id = user.value<Uuid>(kInsert, pg::Params::of(kGuild, 1, 2, 100));
  EXPECT_EQ(user.value<std::string>("SELECT status FROM economy.fn_get_pending_transfer($1)", pg::Params::of(id)),
            "approved");
  EXPECT_EQ(column(user.must(kNow, now_params({{1, 2, 50}})), "outcome"), (Texts{"completed"}));
  EXPECT_EQ(column(user.must(kCreate, create_params({{1, 2, 10, "k"}})), "outcome"), (Texts{"created"}));
  const auto waiting = user.value<Uuid>("SELECT economy.fn_create_pending_transfer(7, 1, 2, 5000, '{\"a\": 1}', 48)");
  for (const auto* check : {"balance", "cooldown", "daily_limit"}) {
    EXPECT_EQ(user.value<int>(fmt::format("SELECT economy.fn_check_transfer_{}($1)", check), pg::Params::of(waiting)),
              check == std::string_view("balance") ? 0 : 1);
  }
  EXPECT_EQ(user.value<int>("SELECT count(*) FROM economy.fn_list_pending_transfers(7, NULL, 10, 0)"), 3);
  EXPECT_EQ(user.value<int>("SELECT count(*) FROM economy.transfer_status"), 3);
  EXPECT_EQ(user.value<int>("SELECT retry_limit FROM economy.transfer_status WHERE transfer_id = $1",
                            pg::Params::of(waiting)),
            10);
  EXPECT_EQ(user.value<int>("SELECT default_expiry_hours FROM economy.fn_get_settings(99)"), 24);
  EXPECT_EQ(user.value<int>("SELECT count(*) FROM economy.transfer_denials"), 0);
  EXPECT_EQ(user.value<std::int64_t>("SELECT balance FROM economy.fn_get_account(7, 1)"), 950);
  EXPECT_EQ(user.value<std::int64_t>("SELECT sum(amount) FROM economy.entries WHERE member_id = 2"), 50);
  EXPECT_EQ(user.must(kCancel, pg::Params::of(waiting)).one().get<std::string>("status"), "rejected");
  EXPECT_EQ(process(), 2);
  EXPECT_EQ(audit(), "");
}

// What seed 002 asks for: a bot that may insert into the table and read it, and call the functions that it names.
TEST_F(Rights, a_role_with_the_bare_table_is_fully_served) {
  db.exec(fmt::format(
      "GRANT USAGE ON SCHEMA economy TO {0}; GRANT SELECT, INSERT ON economy.pending_transfers TO {0}; "
      "GRANT EXECUTE ON FUNCTION economy.fn_create_pending_transfer, economy.fn_get_pending_transfer, "
      "economy.fn_list_pending_transfers, economy.fn_check_transfer_balance, economy.fn_check_transfer_cooldown, "
      "economy.fn_check_transfer_daily_limit TO {0}",
      plain_role.name()));
  Session plain(plain_role.dsn(), "plain");
  const auto approved = plain.value<Uuid>(kInsert, pg::Params::of(kGuild, 1, 2, 400));
  const auto waiting = plain.value<Uuid>("SELECT economy.fn_create_pending_transfer(7, 1, 2, 700)");
  EXPECT_EQ(plain.value<std::string>("SELECT status FROM economy.pending_transfers WHERE transfer_id = $1",
                                     pg::Params::of(approved)),
            "approved");
  EXPECT_EQ(plain.value<int>("SELECT economy.fn_check_transfer_balance($1)", pg::Params::of(waiting)), 0);
  EXPECT_EQ(plain.value<int>("SELECT count(*) FROM economy.fn_list_pending_transfers(7, 'checking', 100, 0)"), 1);
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(approved), "completed");
  EXPECT_EQ(
      plain.value<std::string>("SELECT status FROM economy.fn_get_pending_transfer($1)", pg::Params::of(approved)),
      "completed");

  // In a session that has made no transfer before, too.
  Session fresh(plain_role.dsn(), "fresh");
  EXPECT_EQ(
      fresh
          .ask("INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount, seq) OVERRIDING "
               "SYSTEM VALUE VALUES (7, 1, 2, 5, 9000000000)")
          .sqlstate,
      "23000");

  // It may name every column, so the table itself refuses what only the checks may write.
  for (const auto* more :
       {"status) VALUES (7, 1, 2, 5, 'approved')", "status) VALUES (7, 1, 2, 5, 'completed')",
        "retry_count) VALUES (7, 1, 2, 5, 3)", "checks) VALUES (7, 1, 2, 5, '{\"balance\": 1}')",
        "seq) OVERRIDING SYSTEM VALUE VALUES (7, 1, 2, 5, 9000000000)", "updated_at) VALUES (7, 1, 2, 5, 'infinity')",
        "created_at) VALUES (7, 1, 2, 5, '-infinity')", "expires_at) VALUES (7, 1, 2, 5, '9998-12-31')"}) {
    const auto answer = plain.ask(
        fmt::format("INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount, {}", more));
    EXPECT_TRUE(answer.sqlstate.starts_with("23")) << more << ": " << answer.sqlstate << " " << answer.message;
  }
  expect_refused(plain,
                 {"UPDATE economy.pending_transfers SET status = 'approved'", "DELETE FROM economy.pending_transfers",
                  "SELECT * FROM economy.accounts", "SELECT economy.fn_mint(7, 1, 1000000, 'r', 'a')"});
  EXPECT_EQ(audit(), "");
}

TEST_F(Rights, a_user_cannot_make_or_move_money_by_a_detour) {
  insert(1, 2, 100);
  expect_refused(
      user,
      {"UPDATE economy.accounts SET balance = balance + 1000000 WHERE member_id = 1",
       "INSERT INTO economy.accounts (guild_id, member_id, balance) VALUES (7, 99, 1000000)",
       "INSERT INTO economy.transactions (kind, guild_id, debit_id, credit_id, amount) VALUES ('mint', 7, 0, 1, 5)",
       "INSERT INTO economy.transfer_work SELECT * FROM economy.transfer_work",
       "DELETE FROM economy.transfer_work",
       "DELETE FROM economy.transfer_denials",
       "UPDATE economy.guild_settings SET daily_limit = NULL",
       "UPDATE economy.pending_transfers SET status = 'completed'",
       "TRUNCATE economy.pending_transfers CASCADE",
       "INSERT INTO economy.outbox (type, subject, data) VALUES ('TransferCompleted', 'transfer/x', '{}')",
       "SELECT economy._issue('mint', 7, 1, 1000000, 'r', 'a', NULL)",
       "SELECT economy._write_accounts('{}', '{}', '{}', '{}', '{}', '{}', '{}', now())",
       "SELECT economy._complete(ARRAY(SELECT transfer_id FROM economy.pending_transfers))",
       "SELECT economy._deny(ARRAY(SELECT transfer_id FROM economy.pending_transfers), 'transfer_cancelled', now())",
       "SELECT economy._settings(7)",
       "SELECT FROM economy.transfer_lanes FOR UPDATE",
       "SELECT economy.fn_lane_holders()",
       "SELECT economy._grant_rights()",
       "SELECT economy.fn_mint(7, 1, 5, 'r', 'a')",
       "SELECT economy.fn_burn(7, 1, 5, 'r', 'a')",
       "SELECT economy.fn_set_settings(7, '{}', 'r', 'a')",
       "SELECT economy.fn_set_account_kind(7, 1, 'government', 'r', 'a')",
       "SELECT economy.fn_fail_transfer(gen_random_uuid(), 'r', 'a')",
       "SELECT economy.fn_process_due(10)",
       "SELECT economy.fn_expire_transfers(10)",
       "SELECT economy.fn_defer_transfer(gen_random_uuid(), 1)",
       "SELECT economy.fn_execution_refused(gen_random_uuid(), 1)",
       "SELECT economy.fn_update_pending_transfer_status(gen_random_uuid(), 'completed')",
       "SELECT economy.fn_audit()",
       "SELECT * FROM economy.operations",
       "CREATE FUNCTION economy.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
       "ALTER TABLE economy.accounts DISABLE TRIGGER ALL"});
  // Column by column: these are the system's to write.
  for (const auto* columns : {"status", "checks", "retry_count", "seq", "created_at", "updated_at"}) {
    expect_refused(user, {fmt::format("INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, "
                                      "amount, {}) VALUES (7, 1, 2, 5, DEFAULT)",
                                      columns)});
  }
  EXPECT_EQ(account(1), "1000/100");
  EXPECT_EQ(audit(), "");
}

// Bounds and lengths of arrays are the caller's. What is decided and what is written must be the same element.
TEST_F(Rights, arrays_with_other_bounds_or_lengths_change_nothing_of_the_rules) {
  const std::string ids = "'{NULL,NULL}', '{7,7}', '{1,1}', '{2,3}', ";
  const std::string texts = ", '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}')";
  EXPECT_EQ(column(user.must("SELECT outcome FROM economy.fn_transfer_now(" + ids + "'[0:1]={1000000,1}'" + texts),
                   "outcome"),
            (Texts{"insufficient_balance", "completed"}));
  EXPECT_EQ(column(user.must("SELECT outcome FROM economy.fn_transfer_now(" + ids + "'{5}'" + texts), "outcome"),
            (Texts{"completed", "invalid"}));
  const auto one = [&](const std::string& texts_of_one) {
    return user.ask("SELECT economy.fn_transfer_now('{NULL}', '{7}', '{1}', '{2}', '{5}', " + texts_of_one + ")")
        .sqlstate;
  };
  EXPECT_EQ(one(fmt::format("'[0:0]={{{}}}', '{{NULL}}', '{{NULL}}'", std::string(501, 'x'))), "23514");
  EXPECT_EQ(one(R"('{NULL}', '[0:0]={"[1,2]"}', '{NULL}')"), "23514");
  EXPECT_EQ(one(R"('{NULL}', '{NULL}', '[0:0]={""}')"), "23514");
  EXPECT_EQ(user.must("SELECT * FROM economy.fn_transfer_now('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')").size(),
            0U);
  EXPECT_EQ(account(1), "994/0");
  EXPECT_EQ(audit(), "");
}

// The caller of fn_transfer_set is a node, and still the database decides.
TEST_F(Rights, a_node_cannot_name_the_accounts_of_a_set_in_another_order_or_pay_across_guilds) {
  mint(2, 100);
  mint(1, 100, 8);
  const auto set = [&](const std::string& parties) {
    return node.ask("SELECT outcomes FROM economy.fn_transfer_set(" + parties +
                    ", '{50}', ARRAY[gen_random_uuid()], '{NULL}', '{NULL}', '{NULL}', true, true)");
  };
  EXPECT_EQ(set("'{7,7}', '{2,1}', '{1}', '{2}'").sqlstate, "22023");
  EXPECT_EQ(set("'{7,7}', '{1,1}', '{1}', '{2}'").sqlstate, "40001") << "one account, named twice";
  EXPECT_EQ(set("'[0:1]={7,7}', '{1,2}', '{1}', '{2}'").sqlstate, "22023");
  EXPECT_EQ(set("'{7,8}', '{1,1}', '{1}', '{2}'").rows.one().get<std::string>(0), "{invalid}");
  EXPECT_EQ(set("'{7,7}', '{1,2}', '{1}', '{2}'").rows.one().get<std::string>(0), "{completed}");
  EXPECT_EQ(audit(), "");
}

// A trigger function runs as the owner of the schema, whatever table it is put on.
TEST_F(Rights, a_trigger_function_serves_no_table_of_another_owner) {
  insert(1, 2, 100);
  db.exec(
      fmt::format("GRANT EXECUTE ON FUNCTION economy._begin_checking, economy._forget_denials TO {0}; "
                  "GRANT USAGE ON SCHEMA economy TO {0}; CREATE SCHEMA evil2 AUTHORIZATION {0}; "
                  "CREATE TABLE evil2.t (LIKE economy.pending_transfers); ALTER TABLE evil2.t OWNER TO {0}",
                  plain_role.name()));
  Session plain(plain_role.dsn(), "plain");
  plain.must(
      "CREATE TRIGGER plant AFTER INSERT ON evil2.t REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT "
      "EXECUTE FUNCTION economy._begin_checking()");
  plain.must(
      "CREATE TRIGGER forget AFTER DELETE ON evil2.t REFERENCING OLD TABLE AS gone FOR EACH STATEMENT "
      "EXECUTE FUNCTION economy._forget_denials()");
  expect_refused(
      plain, {"INSERT INTO evil2.t (transfer_id, seq, guild_id, initiator_id, target_id, amount, status, checks, "
              "retry_count, expires_at, metadata, created_at, updated_at) VALUES (gen_random_uuid(), 1, 7, 1, 2, 700, "
              "'pending', '{}', 0, now(), '{}', now(), now())",
              "DELETE FROM evil2.t"});
  EXPECT_EQ(account(1), "1000/100");
}

// A database administrator has functions of its own there.
TEST_F(Rights, functions_of_other_owners_are_left_alone) {
  db.exec(
      fmt::format("CREATE FUNCTION economy.fn_report() RETURNS text LANGUAGE sql AS 'SELECT current_user::text'; "
                  "ALTER FUNCTION economy.fn_report OWNER TO {0}; GRANT EXECUTE ON FUNCTION economy.fn_report TO {0}",
                  operator_role.name()));
  db.exec("SELECT economy._grant_rights()");
  EXPECT_EQ(db.exec("SELECT prosecdef FROM pg_proc WHERE proname = 'fn_report'"), "f");
}

TEST_F(Rights, an_operator_issues_sets_and_fails_and_leaves_its_name) {
  EXPECT_EQ(op.must("SELECT outcome FROM economy.fn_mint(7, 5, 70, 'gift', 'ann')").one().get<std::string>(0),
            "completed");
  op.must("SELECT economy.fn_burn(7, 5, 20, 'fee', 'ann')");
  op.must(R"(SELECT economy.fn_set_settings(7, '{"daily_limit": 300}', 'calm', 'ann'))");
  op.must("SELECT economy.fn_set_account_kind(7, 5, 'government', 'treasury', 'ann')");
  const auto id = insert(1, 2, 10);
  EXPECT_TRUE(op.must("SELECT * FROM economy.fn_fail_transfer($1, 'stuck', 'ann')", pg::Params::of(id))
                  .one()
                  .get<bool>("failed"));
  const auto records = op.must(
      "SELECT action, actor, session_role FROM economy.operations WHERE actor = 'ann' "
      "ORDER BY operation_id");
  EXPECT_EQ(column(records, "action"), (Texts{"mint", "burn", "set_settings", "set_account_kind", "fail"}));
  for (const auto& role : column(records, "session_role")) EXPECT_EQ(role, operator_role.name());
  EXPECT_EQ(op.value<int>("SELECT sum(wrong) FROM economy.fn_audit()"), 0);
  expect_refused(op, {"SELECT economy.fn_process_due(10)", "SELECT economy.fn_expire_transfers(10)",
                      "UPDATE economy.accounts SET balance = 5", "DELETE FROM economy.operations",
                      "UPDATE economy.operations SET actor = 'bob'"});
}

TEST_F(Rights, a_node_needs_no_right_to_write_a_table) {
  EXPECT_EQ(column(node.must(kNow, now_params({{1, 2, 50}, {1, 3, 5}})), "outcome"), (Texts{"completed", "completed"}));
  node.must(kCreate, create_params({{1, 2, 10}}));
  EXPECT_EQ(node.must("SELECT * FROM economy.fn_process_due(10, p_hold_lanes => true)").one().get<int>("completed"), 1);
  node.must(kExpire);
  EXPECT_EQ(node.value<int>("SELECT sum(wrong) FROM economy.fn_audit()"), 0);
  expect_refused(node, {"UPDATE economy.accounts SET balance = 5", "SELECT FROM economy.transfer_lanes FOR UPDATE",
                        "INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount) "
                        "VALUES (7, 1, 2, 3)"});
}

// A caller who puts its own functions, operators or tables in front of PostgreSQL's changes nothing.
TEST_F(Rights, a_search_path_of_the_caller_voids_no_rule) {
  settings(R"({"cooldown_seconds": 300, "daily_limit": 100})");
  db.exec(fmt::format(R"(
    CREATE SCHEMA evil AUTHORIZATION {0};
    SET ROLE {0};
    CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2040-01-01' $$;
    CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2040-01-01' $$;
    CREATE FUNCTION evil._clock() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2040-01-01' $$;
    CREATE FUNCTION evil.greatest_of(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
    CREATE OPERATOR evil.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.greatest_of);
    CREATE OPERATOR evil.>= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.greatest_of);
    CREATE FUNCTION evil.coalesced(bigint, bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT 1000000::bigint $$;
    CREATE OPERATOR evil.- (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.coalesced);
    CREATE TABLE evil.accounts (guild_id bigint, member_id bigint, kind text, balance bigint);
    CREATE TABLE evil.event (x integer);
    RESET ROLE)",
                      user_role.name()));
  user.must("SET search_path = evil, pg_catalog, pg_temp");
  user.must("CREATE TEMP TABLE pg_settings (x integer)");
  user.must("CREATE TEMP TABLE accounts (x integer)");
  EXPECT_EQ(user.value<int>("SELECT extract(year FROM clock_timestamp())"), 2040) << "the trap is set";
  const auto outcome = [&](std::int64_t amount) {
    return column(user.must(kNow, now_params({{1, 2, amount}})), "outcome").at(0);
  };
  EXPECT_EQ(outcome(10), "completed");
  EXPECT_EQ(outcome(10), "cooldown");
  tamper("UPDATE economy.accounts SET last_transfer_at = last_transfer_at - interval '1 hour'");
  EXPECT_EQ(outcome(91), "daily_limit");
  EXPECT_EQ(outcome(100'000), "insufficient_balance");
  const auto id = user.value<Uuid>(kInsert, pg::Params::of(kGuild, 1, 2, 91));
  EXPECT_EQ(state(id), "checking 0");
  EXPECT_EQ(checks(id), "110");
  EXPECT_EQ(user.value<int>("SELECT economy.fn_check_transfer_daily_limit($1)", pg::Params::of(id)), 0);
  EXPECT_EQ(audit(), "");
}

TEST_F(Rights, every_function_is_closed_and_every_entry_is_pinned) {
  const auto names = [&](const std::string& where) {
    return column(admin.must("SELECT p.oid::regprocedure::text AS f FROM pg_proc AS p WHERE p.pronamespace = "
                             "'economy'::regnamespace AND (" +
                             where + ") ORDER BY 1"),
                  "f");
  };
  EXPECT_EQ(names("p.proacl IS NULL OR EXISTS (SELECT FROM aclexplode(p.proacl) AS a WHERE a.grantee = 0)"), Texts{})
      << "PUBLIC may call these";
  const std::string entry = R"((p.proname LIKE 'fn\_%' OR p.prorettype = 'trigger'::regtype))";
  EXPECT_EQ(names(entry + " AND NOT (p.prosecdef AND p.proconfig = '{\"search_path=pg_catalog, pg_temp\"}')"), Texts{});
  EXPECT_EQ(names("NOT " + entry + " AND (p.prosecdef OR p.proconfig IS NOT NULL)"), Texts{})
      << "a SET clause keeps a function from being inlined";

  // A function that comes later is closed, too, and only in this schema.
  admin.must("CREATE FUNCTION economy.later() RETURNS integer LANGUAGE sql AS 'SELECT 1'");
  admin.must("CREATE FUNCTION public.later() RETURNS integer LANGUAGE sql AS 'SELECT 1'");
  expect_refused(user, {"SELECT economy.later()"});
  EXPECT_EQ(user.value<int>("SELECT public.later()"), 1);
}

// Roles belong to the whole cluster, so several databases may create them at the same moment.
TEST_F(Rights, a_role_that_another_session_just_creates_is_no_error) {
  const auto name = "created_twice_" + db.name();
  constexpr std::string_view kNeed = "SELECT economy._need_role($1)";
  Session other(db.dsn(), "other");
  admin.must("BEGIN");
  EXPECT_TRUE(admin.value<bool>(kNeed, pg::Params::of(name)));
  other.send(kNeed, pg::Params::of(name));
  EXPECT_TRUE(test::eventually(
      [&] { return db.exec(fmt::format("SELECT cardinality(pg_blocking_pids({}))", other.pid())) == "1"; }));
  admin.must("COMMIT");
  EXPECT_TRUE(other.take().rows.one().get<bool>(0));
  EXPECT_TRUE(admin.value<bool>(kNeed, pg::Params::of(name)));
  db.exec("DROP ROLE " + name);
}

TEST_F(Rights, a_migration_without_the_right_to_create_roles_goes_on_without_them) {
  db.exec("GRANT EXECUTE ON FUNCTION economy._need_role TO " + node_role.name());
  EXPECT_FALSE(node.value<bool>("SELECT economy._need_role($1)", pg::Params::of("never_" + db.name())));
  EXPECT_TRUE(node.value<bool>("SELECT economy._need_role('fencepost_economy_user')"));
}

}  // namespace
}  // namespace fencepost::transfer
