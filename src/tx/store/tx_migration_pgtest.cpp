// Migration 0010 on a database that has transactions in the tables of before, and the stores on what it carries over.
#include "base/digest.hpp"
#include "tx/store/attempt_store.hpp"
#include "tx/store/consistency.hpp"
#include "tx/store/create_store.hpp"
#include "tx/store/cursor_store.hpp"
#include "tx/store/lease_store.hpp"
#include "tx/store/operator_store.hpp"
#include "tx/store/step_store.hpp"
#include "tx/store/tx_migration_test_support.hpp"
#include "tx/store/tx_store.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

TEST_F(TxMigration, every_transaction_looks_as_before) {
  fill();
  const auto before = transactions_before();
  ASSERT_EQ(before.size(), ids.size());
  migrate();
  const auto after = transactions_after();
  EXPECT_EQ(after.size(), before.size());
  for (const auto& [name, id] : ids) EXPECT_EQ(after.at(id.to_string()), before.at(id.to_string())) << name;
}

TEST_F(TxMigration, every_transaction_is_exactly_one_of_waiting_open_and_ended) {
  fill();
  const auto waiting = names("SELECT tx_id FROM managed_tx WHERE state = 'CREATED'");
  const auto open = names("SELECT tx_id FROM managed_tx WHERE state IN ('ALLOCATED', 'TRACKING', 'STUCK')");
  const auto ended = names("SELECT tx_id FROM managed_tx WHERE state IN ('CONFIRMED', 'FAILED_FINAL')");
  const auto with_receipt = names("SELECT tx_id FROM managed_tx WHERE receipt IS NOT NULL");
  ASSERT_EQ(waiting.size() + open.size() + ended.size(), ids.size());
  migrate();
  EXPECT_EQ(names("SELECT tx_id FROM managed_tx WHERE nonce IS NULL"), waiting);
  EXPECT_EQ(names("SELECT tx_id FROM tx_open"), open);
  EXPECT_EQ(names("SELECT tx_id FROM tx_ended"), ended);
  EXPECT_EQ(names("SELECT tx_id FROM tx_receipt"), with_receipt);
  EXPECT_EQ(text("SELECT count(*) FROM managed_tx"), std::to_string(ids.size()));
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto work = co_await check_work(pool);
    EXPECT_EQ(static_cast<std::size_t>(work.open), open.size());
    EXPECT_EQ(work.faults, std::vector<Fault>{});
    EXPECT_EQ(co_await check_records(pool), std::vector<Fault>{});
  });
}

// The view does not show these columns, and the workers read them.
TEST_F(TxMigration, open_work_keeps_what_only_the_workers_read) {
  fill();
  const auto old_work = rows(
      "SELECT tx_id::text, concat_ws('/', chain_id, signer, nonce, told_block, told_hash, withdrawn, fencing_token, "
      "                              receipt ->> 'status' = '0x1') "
      "  FROM managed_tx WHERE state IN ('ALLOCATED', 'TRACKING', 'STUCK')");
  migrate();
  EXPECT_EQ(rows("SELECT tx_id::text, concat_ws('/', chain_id, signer, nonce, announced_block, announced_hash, "
                 "                              withdrawn, fencing_token, succeeded) FROM tx_open"),
            old_work);
  EXPECT_EQ(names("SELECT tx_id FROM tx_open WHERE NOT succeeded"), Names{"mined_reverted"});
  EXPECT_EQ(text("SELECT count(*) FROM tx_open WHERE last_receipt_check IS NOT NULL"), "0");  // are looked up again
  EXPECT_EQ(names("SELECT r.tx_id FROM tx_receipt AS r JOIN managed_tx AS m USING (tx_id) JOIN tx_view AS t USING "
                  "(tx_id) WHERE r.chain_id <> m.chain_id OR r.receipt_block <> t.receipt_block"),
            Names{});
  EXPECT_EQ(
      names("SELECT tx_id FROM tx_ended JOIN managed_tx AS m USING (tx_id) WHERE tx_ended.chain_id <> m.chain_id"),
      Names{});
}

TEST_F(TxMigration, attempts_history_and_events_are_all_kept) {
  fill();
  const auto old_attempts = attempts();
  const auto old_history = rows(
      "SELECT subject_id || why, concat_ws('/', 'tx/' || subject_id, at, from_state, to_state, sub_state, node, "
      "                                    fencing_token, why) FROM step_history");
  const auto old_events = rows("SELECT subject || type, concat_ws('/', created_at, data) FROM outbox_event");
  ASSERT_EQ(old_history.size(), std::stoul(text("SELECT count(*) FROM step_history")));
  ASSERT_EQ(old_events.size(), std::stoul(text("SELECT count(*) FROM outbox_event")));
  migrate();
  EXPECT_EQ(attempts(), old_attempts);
  EXPECT_EQ(rows("SELECT substr(subject, 4) || why, concat_ws('/', subject, at, from_state, to_state, sub_state, node, "
                 "                                            fencing_token, why) FROM history"),
            old_history);
  EXPECT_EQ(rows("SELECT subject || type, concat_ws('/', at, data) FROM outbox"), old_events);
  EXPECT_EQ(text("SELECT count(*) FROM event"), std::to_string(old_history.size() + old_events.size()));
}

TEST_F(TxMigration, leases_are_free_and_their_tokens_are_void) {
  fill();
  const auto old_tokens = rows("SELECT chain_id || signer, (fencing_token + 1)::text FROM signer_lease");
  ASSERT_EQ(old_tokens.size(), 7u);
  migrate();
  EXPECT_EQ(rows("SELECT chain_id || signer, fencing_token::text FROM signer_lease"), old_tokens);
  EXPECT_EQ(text("SELECT count(*) FROM signer_lease WHERE owner_node <> '' OR expires_at <> '-infinity'"), "0");
}

TEST_F(TxMigration, cursors_know_the_first_that_waits_and_the_first_without_a_receipt) {
  fill();
  constexpr auto kKept =
      "SELECT chain_id || signer, concat_ws('/', next_nonce, next_creation, chain_nonce, chain_nonce_at, "
      "                                     needs_reconcile, fencing_token, updated_at) FROM signer_nonce_cursor";
  const auto kept = rows(kKept);
  migrate();
  EXPECT_EQ(rows(kKept), kept);
  const auto place = [](const SignerKey& key) { return std::to_string(key.chain_id) + key.signer; };
  EXPECT_EQ(rows("SELECT chain_id || signer, first_waiting || ' ' || first_unmined FROM signer_nonce_cursor"),
            (Rows{{place(kMixed), "16 6"},
                  {place(kShared), "2 6"},
                  {place(kMined), "2 2"},
                  {place(kUnseeded), "0 0"},
                  {place(kReconcile), "1 4"},
                  {place(kTwin), "1 0"}}));
}

TEST_F(TxMigration, an_empty_database_migrates) {
  migrate();
  EXPECT_EQ(text("SELECT count(*) FROM tx_view"), "0");
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto leases = co_await acquire_leases(pool, "new", kChainA, {kMixed.signer}, LeaseTimes{});
    EXPECT_EQ(leases.size(), 1u);
    EXPECT_EQ(leases.at(0).fencing_token, 1);
  });
}

TEST_F(TxMigration, a_database_of_ended_transactions_migrates) {
  lease(kMined, "next_nonce, next_creation", "2, 2");
  numbered("first", kMined, 0, 0, "CONFIRMED", sent(1) + "," + mined(70) + "," + ended());
  numbered("second", kMined, 1, 1, "FAILED_FINAL", sent(2) + "," + ended("nonce_consumed_elsewhere"));
  const auto before = transactions_before();
  migrate();
  EXPECT_EQ(transactions_after(), before);
  EXPECT_EQ(text("SELECT count(*) FROM tx_open"), "0");
  EXPECT_EQ(text("SELECT first_waiting || ' ' || first_unmined FROM signer_nonce_cursor"), "2 2");
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const auto orphans = co_await find_orphans(pool, {kChainA}, LeaseTimes{}, 10);
    EXPECT_TRUE(orphans.empty());
  });
}

// A node's role may differ from the role that migrates.
TEST_F(TxMigration, roles_keep_what_they_were_granted) {
  const auto node = "node_" + db.name(), auditor = "auditor_" + db.name();
  db.exec(fmt::format("CREATE ROLE {}; CREATE ROLE {}", node, auditor));
  db.exec(fmt::format("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}", node));
  db.exec(fmt::format("GRANT SELECT ON managed_tx TO {}", auditor));
  migrate();
  for (const auto* table : {"tx_open", "tx_receipt", "tx_ended"}) {
    for (const auto* right : {"SELECT", "INSERT", "UPDATE", "DELETE"}) {
      const auto may = [&](const std::string& role) {
        return text(fmt::format("SELECT has_table_privilege('{}', '{}', '{}')::text", role, table, right));
      };
      EXPECT_EQ(may(node), "true") << table << " " << right;
      EXPECT_EQ(may(auditor), right == std::string_view("SELECT") ? "true" : "false") << table << " " << right;
    }
  }
  EXPECT_EQ(text(fmt::format("SELECT has_table_privilege('{}', 'tx_view', 'SELECT')::text", node)), "true");
  EXPECT_EQ(text(fmt::format("SELECT has_table_privilege('{}', 'tx_view', 'SELECT')::text", auditor)), "true");
  for (const auto& role : {node, auditor}) db.exec(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", role));
}

// A new node that has taken every lease of the carried database. After each test the tables agree.
class CarriedWork : public TxMigration {
 protected:
  CarriedWork() {
    fill();
    migrate();
  }

  template <class Body>
  void as_new_node(Body body) {
    test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
      for (const auto& key : {kMixed, kShared, kMined, kUnseeded, kReconcile, kTwin}) {
        const auto got = co_await acquire_leases(pool, "new", key.chain_id, {key.signer}, LeaseTimes{});
        EXPECT_EQ(got.size(), 1u);
        for (const auto& lease : got) leases[lease.key] = lease;
      }
      co_await body(pool);
      const auto work = co_await check_work(pool);
      EXPECT_EQ(work.faults, std::vector<Fault>{});
      EXPECT_EQ(co_await check_records(pool), std::vector<Fault>{});
    });
  }

  Step step(const std::string& name, const SignerKey& key, TxState from, TxState to) {
    return {leases.at(key), ids.at(name), from, to, "test"};
  }
  Step receipt_step(const std::string& name, const SignerKey& key, TxState from, std::int64_t block) {
    auto out = step(name, key, from, TxState::kTracking);
    out.expect_receipt_hash = "";
    out.sub_state = SubState::kMined;
    out.receipt = StoredReceipt{R"({"status":"0x1"})", block, hash(block), true};
    return out;
  }
  Claim claim_of(const std::string& name, std::int64_t number, std::optional<std::string> previous = std::nullopt) {
    return {.lease = leases.at(kMixed),
            .tx_id = ids.at(name),
            .previous_hash = std::move(previous),
            .tx_hash = hash(number),
            .raw = Bytes{3, 4},
            .fees = "{}"};
  }
  NewTx request(const std::string& name, const SignerKey& key, const std::string& payload_of) {
    const auto digest = sha256(payload_of);  // as in `waiting`
    return {.tx_id = Uuid::parse("01900000-0000-7000-8000-0000000fffff").value(),
            .key = key,
            .request_id = name,
            .payload = "{}",
            .payload_hash = std::string(digest.begin(), digest.end()),
            .gas_limit = 1};
  }
  std::string state_of(const std::string& name) {
    return text(fmt::format("SELECT state || coalesce('/' || sub_state, '') FROM tx_view WHERE tx_id = '{}'",
                            ids.at(name).to_string()));
  }
  std::string cursor_of(const SignerKey& key) {
    return text(
        fmt::format("SELECT concat_ws(' ', next_nonce, first_waiting, first_unmined) FROM signer_nonce_cursor "
                    "WHERE chain_id = {} AND signer = '{}'",
                    key.chain_id, key.signer));
  }

  std::map<SignerKey, SignerLease> leases;
};

TEST_F(CarriedWork, a_new_node_takes_the_leases_with_tokens_of_its_own) {
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    auto orphans = co_await find_orphans(pool, {kChainA, kChainB}, LeaseTimes{}, 10);
    std::ranges::sort(orphans);
    EXPECT_EQ(orphans, (std::vector{kTwin, kReconcile, kMixed, kShared, kMined, kUnseeded}));
  });
  as_new_node([&](pg::Pool&) -> awaitable<> {
    for (const auto& [key, lease] : leases) EXPECT_EQ(lease.fencing_token, kOldToken + 2);
    co_return;
  });
}

TEST_F(CarriedWork, allocated_transactions_are_due_and_can_be_claimed_and_sent) {
  as_new_node([&](pg::Pool& pool) -> awaitable<> {
    const auto due = co_await due_submits(pool, "new", kChainA, std::nullopt, 100);
    std::map<std::string, DueSubmit> by_name;
    for (const auto& one : due) by_name[name_of(one.tx_id)] = one;
    EXPECT_EQ(by_name.size(), 4u);
    const auto& claimed = by_name["claimed"];
    EXPECT_EQ(claimed.nonce, 13);
    EXPECT_EQ(claimed.tx_hash, hash(15));
    EXPECT_EQ(claimed.raw, "0x0102");
    EXPECT_EQ(claimed.attempts, 1);
    EXPECT_EQ(claimed.claims, 1);
    EXPECT_EQ(by_name["retrying"].retry_count, 3);
    EXPECT_EQ(by_name["retrying"].sub_state, SubState::kTransient);
    EXPECT_EQ(by_name["unsigned"].tx_hash, std::nullopt);
    EXPECT_EQ(by_name["unsigned"].payload, R"({"to": "unsigned"})");
    EXPECT_EQ(by_name["gap_fill"].sub_state, SubState::kGapFill);

    const auto results =
        co_await claim_attempts(pool, "new", {claim_of("claimed", 15, hash(15)), claim_of("unsigned", 500)}, 60s);
    EXPECT_EQ(results.size(), 2u);
    for (const auto& result : results) EXPECT_EQ(result.outcome, StepOutcome::kDone);
    EXPECT_EQ(results[0].claims, 2);  // the same bytes again
    const auto done = co_await apply_steps(pool, "new",
                                           {step("claimed", kMixed, TxState::kAllocated, TxState::kTracking),
                                            step("unsigned", kMixed, TxState::kAllocated, TxState::kTracking),
                                            step("retrying", kMixed, TxState::kAllocated, TxState::kStuck)});
    EXPECT_EQ(done, std::vector(3, StepOutcome::kDone));
  });
  EXPECT_EQ(state_of("claimed"), "TRACKING");
  EXPECT_EQ(state_of("unsigned"), "TRACKING");
  EXPECT_EQ(state_of("retrying"), "STUCK/transient");
}

TEST_F(CarriedWork, the_head_of_each_signer_is_its_first_nonce_without_a_receipt) {
  as_new_node([&](pg::Pool& pool) -> awaitable<> {
    Names heads;
    for (const auto& head : co_await open_heads(pool, "new", kChainA)) {
      heads.push_back(name_of(head.tx_id));
      if (heads.back() == "reorged") {
        EXPECT_TRUE(head.withdrawn);
        EXPECT_TRUE(head.since_head);  // since the receipt of the nonce before
      }
    }
    std::ranges::sort(heads);
    EXPECT_EQ(heads, (Names{"external", "reorged"}));
  });
}

TEST_F(CarriedWork, tracked_and_stuck_transactions_are_matched_and_get_their_receipts) {
  as_new_node([&](pg::Pool& pool) -> awaitable<> {
    Names matched;
    for (const auto& match : co_await match_attempts(pool, "new", kChainA, {hash(1), hash(8), hash(9), hash(13)})) {
      matched.push_back(name_of(match.tx_id));
    }
    std::ranges::sort(matched);
    EXPECT_EQ(matched, (Names{"cancelling", "sent", "stuck"}));
    std::set<std::string> stale;
    for (const auto& match : co_await stale_receipts(pool, "new", kChainA, 1h, 100)) stale.insert(name_of(match.tx_id));
    EXPECT_EQ(stale, (std::set<std::string>{"cancelling", "claimed", "recorded", "reorged", "sent", "stuck", "taken"}));
    std::vector<Step> steps;
    std::int64_t block = 200;
    for (const auto* name : {"reorged", "sent", "cancelling", "recorded"}) {
      steps.push_back(receipt_step(name, kMixed, TxState::kTracking, ++block));
    }
    steps.push_back(receipt_step("stuck", kMixed, TxState::kStuck, ++block));
    steps.push_back(step("external", kShared, TxState::kTracking, TxState::kStuck));
    steps.push_back(step("taken", kMixed, TxState::kStuck, TxState::kFailedFinal));
    const auto done = co_await apply_steps(pool, "new", steps);
    EXPECT_EQ(done, std::vector(steps.size(), StepOutcome::kDone));
    EXPECT_EQ((co_await mined_between(pool, "new", kChainA, {200, 300}, {}, 100)).size(), 5u);
  });
  EXPECT_EQ(state_of("external"), "STUCK/external");
  EXPECT_EQ(state_of("stuck"), "TRACKING/mined");
  EXPECT_EQ(state_of("taken"), "FAILED_FINAL/nonce_taken");
}

TEST_F(CarriedWork, a_cancel_that_may_not_have_been_sent_is_due_at_once) {
  as_new_node([&](pg::Pool& pool) -> awaitable<> {
    Names due;
    for (const auto& one : co_await claim_resubmits(pool, "new", kChainA, 60s, 100)) {
      due.push_back(name_of(one.tx_id));
      if (due.back() == "cancelling") EXPECT_EQ(one.tx_hash, hash(10));
    }
    std::ranges::sort(due);
    EXPECT_EQ(due, (Names{"cancelling", "reorged", "sent", "stuck", "taken"}));
  });
}

TEST_F(CarriedWork, mined_transactions_end_or_lose_their_receipts) {
  as_new_node([&](pg::Pool& pool) -> awaitable<> {
    const auto mined = co_await mined_between(pool, "new", kChainA, {}, {}, 100);
    std::map<std::string, MinedTx> by_name;
    for (const auto& one : mined) by_name[name_of(one.tx_id)] = one;
    EXPECT_EQ(by_name.size(), 5u);
    EXPECT_TRUE(by_name["mined"].succeeded);
    EXPECT_FALSE(by_name["mined_reverted"].succeeded);
    EXPECT_EQ(by_name["mined"].block, 104);
    EXPECT_EQ(by_name["mined"].announced.value().number, 105);
    EXPECT_EQ(by_name["external_mined"].attempt_kind, AttemptKind::kExternal);
    EXPECT_EQ((co_await mined_open(pool, "new", kChainA, {}, {}, 100)).size(), 5u);

    auto confirm = step("mined", kMixed, TxState::kTracking, TxState::kConfirmed);
    confirm.confirmations = "[1]";
    confirm.expect_receipt_hash = hash(104);
    auto drop = step("all_mined", kMined, TxState::kTracking, TxState::kTracking);
    drop.drop_receipt = drop.retract = true;
    const auto done =
        co_await apply_steps(pool, "new",
                             {confirm, step("mined_reverted", kMixed, TxState::kTracking, TxState::kFailedFinal),
                              step("mined_above", kMixed, TxState::kStuck, TxState::kConfirmed),
                              step("external_mined", kShared, TxState::kTracking, TxState::kFailedFinal), drop});
    EXPECT_EQ(done, std::vector(5, StepOutcome::kDone));
  });
  EXPECT_EQ(state_of("mined"), "CONFIRMED/mined");
  EXPECT_EQ(text("SELECT count(*) FROM tx_receipt WHERE receipt_block = 71"), "0");
  EXPECT_EQ(cursor_of(kMined), "2 2 1");
}

TEST_F(CarriedWork, waiting_transactions_get_their_nonces_in_the_order_of_creation) {
  as_new_node([&](pg::Pool& pool) -> awaitable<> {
    std::vector<Allotment> all;
    all.reserve(leases.size());
    for (const auto& [key, lease] : leases) all.push_back({lease, 0});
    const auto nonces = [this](const std::vector<Promotion>& promoted) {
      std::map<std::string, std::int64_t> out;
      for (const auto& one : promoted) out[name_of(one.tx_id)] = one.nonce;
      return out;
    };
    EXPECT_EQ(nonces(co_await promote(pool, "new", all)), (std::map<std::string, std::int64_t>{{"waiting_16", 16},
                                                                                               {"waiting_17", 17},
                                                                                               {"waiting_18", 18},
                                                                                               {"behind_external", 8},
                                                                                               {"last", 9},
                                                                                               {"twin_waiting", 1}}));
    // The signers that need the chain's count first.
    const auto seen = co_await observe_chain_nonces(pool, "new", {{leases.at(kUnseeded), 30, false}});
    EXPECT_EQ(seen.at(0).outcome, CursorOutcome::kSeeded);
    const auto created =
        co_await create_batch(pool, "new", {{leases.at(kReconcile), 0}}, {request("new", kReconcile, "new")});
    EXPECT_EQ(created.at(0).outcome, CreateOutcome::kNeedsReconcile);
    const OperatorAct act{leases.at(kReconcile), std::nullopt, "accept", "test", "me"};
    const auto accepted = co_await accept_chain_nonce(pool, "new", act, 9);
    EXPECT_EQ(accepted.next_nonce, 9);
    EXPECT_EQ(nonces(co_await promote(pool, "new", all)),
              (std::map<std::string, std::int64_t>{
                  {"unseeded_0", 30}, {"unseeded_1", 31}, {"reconcile_1", 9}, {"reconcile_2", 10}}));
  });
  EXPECT_EQ(cursor_of(kMixed), "19 19 6");
  EXPECT_EQ(cursor_of(kUnseeded), "32 2 30");
}

TEST_F(CarriedWork, a_repeated_request_is_still_the_same_transaction) {
  as_new_node([&](pg::Pool& pool) -> awaitable<> {
    for (const auto* name : {"confirmed", "elsewhere", "sent", "waiting_17"}) {
      const auto again = co_await create_batch(pool, "new", {{leases.at(kMixed), 0}}, {request(name, kMixed, name)});
      EXPECT_EQ(again.at(0).outcome, CreateOutcome::kExisting) << name;
      EXPECT_EQ(again.at(0).tx.value().tx_id, ids.at(name));
      const auto other =
          co_await create_batch(pool, "new", {{leases.at(kMixed), 0}}, {request(name, kMixed, "another payload")});
      EXPECT_EQ(other.at(0).outcome, CreateOutcome::kConflict) << name;
    }
  });
}

}  // namespace
}  // namespace fencepost::tx
