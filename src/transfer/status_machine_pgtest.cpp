// The database enforces the status machine of a transfer for every writer.
#include "transfer/economy_test_support.hpp"
#include "transfer/transfer.hpp"

namespace fencepost::transfer {
namespace {

class StatusMachine : public EconomyTest {
 protected:
  // A transfer that has reached this status by the regular steps.
  Uuid in_state(const std::string& status) {
    mint(1, 10);
    const auto id = insert(1, 2, status == "checking" || status == "rejected" ? 1'000'000 : 10);
    if (status == "completed") process();
    if (status == "rejected") admin.must(kCancel, pg::Params::of(id));
    EXPECT_EQ(admin.value<std::string>("SELECT status FROM economy.pending_transfers WHERE transfer_id = $1",
                                       pg::Params::of(id)),
              status);
    return id;
  }
  std::string set_status(const Uuid& id, const std::string& status) {
    return admin
        .ask("UPDATE economy.pending_transfers SET status = $2 WHERE transfer_id = $1", pg::Params::of(id, status))
        .sqlstate;
  }
};

constexpr auto kStatuses = {"pending", "checking", "approved", "completed", "rejected"};
static_assert(kStatuses.size() == kPendingTransfer.size());

TEST_F(StatusMachine, no_status_is_changed_by_hand) {
  for (const auto* from : {"checking", "approved", "completed", "rejected"}) {
    const auto id = in_state(from);
    for (const std::string to : kStatuses) {
      if (to == from && to == "checking") continue;  // changes nothing
      EXPECT_EQ(set_status(id, to), "23000") << from << " → " << to;
    }
    EXPECT_EQ(audit(), "");
  }
}

// A step that is not in the program's table is refused even if the rest of the row would be valid.
TEST_F(StatusMachine, allows_the_steps_of_the_programs_table_and_no_others) {
  db.exec("ALTER TABLE economy.pending_transfers DISABLE TRIGGER pending_transfers_true");
  const auto id = in_state("checking");
  for (const std::string from : kStatuses) {
    for (const std::string to : kStatuses) {
      const bool retry = from == "checking" && to == "checking";  // a retry changes the checks
      const bool allowed = kPendingTransfer.allowed(*kPendingTransfer.find(from), *kPendingTransfer.find(to));
      tamper(fmt::format("UPDATE economy.pending_transfers SET status = '{}'", from));
      EXPECT_EQ(set_status(id, to), allowed || retry ? "" : "23000") << from << " → " << to;
    }
  }
}

TEST_F(StatusMachine, completed_needs_the_matching_ledger_row) {
  const auto id = in_state("approved");
  constexpr std::string_view kPost =
      "WITH gone AS (DELETE FROM economy.transfer_work WHERE transfer_id = $1), "
      "posted AS (INSERT INTO economy.transactions (transfer_id, kind, guild_id, debit_id, credit_id, amount, "
      "debit_after, credit_after) VALUES ($1, 'transfer', 7, 1, 2, $2, 0, 10)) "
      "UPDATE economy.pending_transfers SET status = 'completed' WHERE transfer_id = $1";
  EXPECT_EQ(admin.ask(kPost, pg::Params::of(id, 9)).sqlstate, "23000");
  EXPECT_EQ(admin.ask(kPost, pg::Params::of(id, 10)).sqlstate, "");
}

TEST_F(StatusMachine, terms_never_change) {
  const auto id = in_state("checking");
  for (const auto* set : {"amount = 1", "target_id = 3", "initiator_id = 3", "guild_id = 8", "metadata = '{\"a\": 1}'",
                          "expires_at = 'infinity'", "max_retries = 3", "idempotency_key = 'k'", "reason = 'r'",
                          "created_at = now()", "transfer_id = gen_random_uuid()"}) {
    EXPECT_EQ(admin.ask(fmt::format("UPDATE economy.pending_transfers SET {}", set)).sqlstate, "23000") << set;
  }
  EXPECT_EQ(state(id), "checking 0");
}

TEST_F(StatusMachine, a_finished_transfer_never_changes) {
  for (const auto* status : {"completed", "rejected"}) {
    const auto id = in_state(status);
    for (const auto* set : {"updated_at = now()", "retry_count = 5", "checks = '{}'"}) {
      EXPECT_EQ(admin
                    .ask(fmt::format("UPDATE economy.pending_transfers SET {} WHERE transfer_id = $1", set),
                         pg::Params::of(id))
                    .sqlstate,
                "23000")
          << status << " " << set;
    }
  }
}

TEST_F(StatusMachine, an_insert_must_have_the_initial_status) {
  for (const auto* values : {"'checking', 0, '{}'", "'approved', 0, '{}'", "'completed', 0, '{}'",
                             "'rejected', 0, '{}'", "'pending', 1, '{}'", R"('pending', 0, '{"balance": 1}')"}) {
    EXPECT_EQ(admin
                  .ask(fmt::format("INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount, "
                                   "status, retry_count, checks) VALUES (7, 1, 2, 5, {})",
                                   values))
                  .sqlstate,
              "23000")
        << values;
  }
}

TEST_F(StatusMachine, invalid_terms_are_refused) {
  for (const auto* values :
       {"7, 1, 1, 5", "7, 1, 2, 0", "7, 1, 2, -5", "7, 0, 2, 5", "7, 1, 0, 5", "0, 1, 2, 5", "7, 1, 2, NULL"}) {
    const auto answer = admin.ask(fmt::format(
        "INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount) VALUES ({})", values));
    EXPECT_TRUE(answer.sqlstate == "23514" || answer.sqlstate == "23502") << values << ": " << answer.message;
  }
}

// One such row would make every list that contains it fail.
TEST_F(StatusMachine, values_that_cannot_be_listed_are_not_stored) {
  for (const auto* set :
       {"expires_at = '-infinity'", "expires_at = 'infinity'", "created_at = '0044-03-15 BC'", "metadata = '[1]'",
        "metadata = ('{\"k\": ' || repeat('[', 16) || '1' || repeat(']', 16) || '}')::jsonb",
        "metadata = jsonb_build_object('k', repeat('x', 9000))", "metadata = '{\"k\": 1e9000}'"}) {
    const std::string_view assignment(set);
    const auto column = assignment.substr(0, assignment.find(" = "));
    const auto value = assignment.substr(assignment.find(" = ") + 3);
    EXPECT_EQ(admin
                  .ask(fmt::format("INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount, "
                                   "{}) VALUES (7, 1, 2, 5, {})",
                                   column, value))
                  .sqlstate,
              "23514")
        << set;
  }
  in_state("checking");
  for (const auto* set : {"checks = '[1]'", "retry_count = 2147483647", "retry_count = -1", "updated_at = 'infinity'",
                          "updated_at = '-infinity'"}) {
    EXPECT_EQ(admin.ask(fmt::format("UPDATE economy.pending_transfers SET {}", set)).sqlstate, "23514") << set;
  }
}

// Such a row would make a later set fail.
TEST_F(StatusMachine, what_a_hand_may_write_makes_no_later_set_fail) {
  const auto id = in_state("checking");
  admin.must("UPDATE economy.pending_transfers SET retry_count = 1000000");
  settings(R"({"max_retries": null})");
  pass("10 min");
  process();
  EXPECT_EQ(state(id), "checking 1000000");
  const auto next = [&](std::string_view seq) {
    return admin
        .ask(fmt::format("INSERT INTO economy.pending_transfers (seq, guild_id, initiator_id, target_id, amount) "
                         "OVERRIDING SYSTEM VALUE VALUES ({}, 7, 1, 2, 1)",
                         seq))
        .sqlstate;
  };
  EXPECT_EQ(next("1000"), "23000");
  EXPECT_EQ(next("0"), "23000");
  for (int i = 0; i < 3; ++i) insert(1, 2, 1);
  EXPECT_EQ(audit(), "");
}

// Two sessions that use one id for transfers of different payers, in every mode, and in every order.
TEST_F(StatusMachine, an_id_is_one_transfer_whoever_pays) {
  mint(1, 1'000);
  mint(3, 1'000);
  const auto in_pool = [](Session& session, const Uuid& id, int amount) {
    session.send(
        "INSERT INTO economy.pending_transfers (transfer_id, guild_id, initiator_id, target_id, amount) VALUES "
        "($1, 7, 1, 2, $2)",
        pg::Params::of(id, amount));
  };
  const auto at_once = [](Session& session, const Uuid& id) {
    session.send(
        "SELECT * FROM economy.fn_transfer_now(ARRAY[$1::uuid], ARRAY[7], ARRAY[3], ARRAY[4], ARRAY[5], ARRAY[NULL], "
        "ARRAY['{}'], ARRAY[NULL])",
        pg::Params::of(id));
  };
  Session a(db.dsn(), "a");
  Session b(db.dsn(), "b");
  for (const bool pool_first : {true, false}) {
    for (const int amount : {5, 5'000}) {  // approved, and waiting
      for (const bool rejected : {false, true}) {
        settings(rejected ? R"({"max_retries": 0})" : R"({"max_retries": 10})");
        for (const bool commits : {true, false}) {
          SCOPED_TRACE(
              fmt::format("pool first {}, {}, rejected {}, commits {}", pool_first, amount, rejected, commits));
          const auto id = admin.value<Uuid>("SELECT gen_random_uuid()");
          a.must("BEGIN");
          pool_first ? in_pool(a, id, amount) : at_once(a, id);
          ASSERT_EQ(a.take().sqlstate, "");
          pool_first ? at_once(b, id) : in_pool(b, id, amount);
          EXPECT_FALSE(b.finished(std::chrono::milliseconds(50))) << "it waits for the other transaction";
          a.must(commits ? "COMMIT" : "ROLLBACK");
          EXPECT_EQ(b.take().sqlstate, commits ? "23505" : "");
          process();
          EXPECT_EQ(audit(), "");
        }
      }
    }
  }
}

constexpr std::string_view kNowWithId =
    "SELECT * FROM economy.fn_transfer_now(ARRAY[$1::uuid], ARRAY[7], ARRAY[1], ARRAY[2], ARRAY[5], ARRAY[NULL], "
    "ARRAY['{}'], ARRAY[NULL])";

TEST_F(StatusMachine, an_id_is_one_transfer_also_when_both_modes_come_at_once) {
  mint(1, 100);
  const auto id = admin.value<Uuid>("SELECT gen_random_uuid()");
  Session pool(db.dsn(), "pool");
  Session sync(db.dsn(), "sync");
  pool.must("BEGIN");
  pool.must(
      "INSERT INTO economy.pending_transfers (transfer_id, guild_id, initiator_id, target_id, amount) VALUES "
      "($1, 7, 1, 2, 5)",
      pg::Params::of(id));
  sync.send(kNowWithId, pg::Params::of(id));
  EXPECT_FALSE(sync.finished(std::chrono::milliseconds(200))) << "the call waits for the lock on the payer";
  pool.must("COMMIT");
  EXPECT_EQ(sync.take().sqlstate, "23505");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(account(2), "5/0");
  EXPECT_EQ(audit(), "");
}

TEST_F(StatusMachine, an_id_is_one_transfer_in_both_modes) {
  mint(1, 100);
  const auto pooled = insert(1, 2, 10);
  const auto now = [&](const Uuid& id) { return admin.ask(kNowWithId, pg::Params::of(id)).sqlstate; };
  const auto again = [&](const Uuid& id) {
    return admin
        .ask(
            "INSERT INTO economy.pending_transfers (transfer_id, guild_id, initiator_id, target_id, amount) VALUES "
            "($1, 7, 1, 2, 5)",
            pg::Params::of(id))
        .sqlstate;
  };
  EXPECT_EQ(now(pooled), "23505");
  const auto fresh = admin.value<Uuid>("SELECT gen_random_uuid()");
  EXPECT_EQ(now(fresh), "");
  EXPECT_EQ(again(fresh), "23505");
  process();
  admin.must("DELETE FROM economy.pending_transfers WHERE transfer_id = $1", pg::Params::of(pooled));
  EXPECT_EQ(again(pooled), "23505") << "the ledger row stays after the transfer is deleted";
  EXPECT_EQ(audit(), "");
}

TEST_F(StatusMachine, a_denial_is_deleted_with_its_transfer) {
  for (int i = 0; i < 6; ++i) in_state("rejected");
  admin.must("DELETE FROM economy.pending_transfers WHERE seq > (SELECT min(seq) + 2 FROM economy.pending_transfers)");
  EXPECT_EQ(admin.must("SELECT FROM economy.fn_list_pending_transfers(7, 'rejected', 2)").size(), 2U);
  EXPECT_EQ(admin.value<int>("SELECT count(*) FROM economy.transfer_denials"), 3);
  EXPECT_EQ(audit(), "");
}

TEST_F(StatusMachine, only_finished_transfers_can_be_deleted) {
  in_state("checking");
  in_state("approved");
  EXPECT_EQ(admin.ask("DELETE FROM economy.pending_transfers WHERE status = 'checking'").sqlstate, "23000");
  EXPECT_EQ(admin.ask("DELETE FROM economy.pending_transfers WHERE status = 'approved'").sqlstate, "23000");
  EXPECT_EQ(admin.ask("TRUNCATE economy.pending_transfers").sqlstate, "23000");
  process();
  in_state("rejected");
  EXPECT_EQ(admin.ask("DELETE FROM economy.pending_transfers WHERE status IN ('completed', 'rejected')").sqlstate, "");
  EXPECT_EQ(audit(), "");
}

TEST_F(StatusMachine, the_function_takes_every_allowed_step_and_no_other) {
  const auto step = [&](const Uuid& id, const std::string& to) {
    return admin.value<bool>("SELECT economy.fn_update_pending_transfer_status($1, $2)", pg::Params::of(id, to));
  };
  const auto waiting = in_state("checking");
  for (const auto* to : {"pending", "checking", "approved", "completed"}) EXPECT_FALSE(step(waiting, to)) << to;
  mint(1, 1'000'000);
  EXPECT_TRUE(step(waiting, "approved"));
  for (const auto* to : {"pending", "checking", "approved", "rejected"}) EXPECT_FALSE(step(waiting, to)) << to;
  EXPECT_TRUE(step(waiting, "completed"));
  for (const std::string to : kStatuses) EXPECT_FALSE(step(waiting, to)) << to;
  const auto other = insert(1, 2, 100'000'000);
  EXPECT_TRUE(step(other, "rejected"));
  for (const std::string to : kStatuses) EXPECT_FALSE(step(other, to)) << to;
  EXPECT_EQ(state(other), "rejected transfer_cancelled");
  EXPECT_FALSE(step(Uuid{}, "approved"));
  EXPECT_EQ(account(2), "1000000/0");
  EXPECT_EQ(audit(), "");
}

}  // namespace
}  // namespace fencepost::transfer
