// The synchronous mode, and one idempotency key for both modes.
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

class Sync : public EconomyTest {
 protected:
  Texts outcomes(const std::vector<Wish>& wishes) { return column(transfer_now(wishes), "outcome"); }
};

TEST_F(Sync, moves_at_once_and_answers_with_balances_and_ledger_id) {
  mint(1, 100);
  const auto rows = transfer_now({{1, 2, 30}});
  EXPECT_EQ(rows.one().get<std::string>("outcome"), "completed");
  EXPECT_EQ(rows.one().get<std::int64_t>("initiator_balance"), 70);
  EXPECT_EQ(rows.one().get<std::int64_t>("target_balance"), 30);
  EXPECT_EQ(admin.value<std::int64_t>("SELECT id FROM economy.transactions WHERE transfer_id = $1",
                                      pg::Params::of(rows.one().get<Uuid>("transfer_id"))),
            rows.one().get<std::int64_t>("ledger_id"));
  EXPECT_EQ(outbox(rows.one().get<Uuid>("transfer_id")), Texts{"TransferCompleted"});
  EXPECT_EQ(account(1), "70/0");
  EXPECT_EQ(audit(), "");
}

TEST_F(Sync, a_refusal_carries_its_figures) {
  settings(R"({"cooldown_seconds": 300, "daily_limit": 50})");
  mint(1, 100);
  mint(3, 1'000);
  make_government(3);
  insert(1, 2, 10);  // reserves, and starts the cooldown
  const auto rows = transfer_now({{1, 2, 91}, {1, 2, 20}, {5, 2, 1}, {3, 2, 500}});
  EXPECT_EQ(column(rows, "outcome"), (Texts{"insufficient_balance", "cooldown", "insufficient_balance", "completed"}));
  EXPECT_EQ(rows[0].get<std::int64_t>("available"), 90);
  EXPECT_EQ(rows[2].get<std::int64_t>("available"), 0);
  EXPECT_TRUE(
      admin.value<bool>("SELECT $1::timestamptz = last_transfer_at + interval '300 s' FROM economy.accounts "
                        "WHERE member_id = 1",
                        pg::Params::of(rows[1].get<std::string>("throttled_until"))));
  pass("301 s");
  const auto limited = transfer_now({{1, 2, 41}});
  EXPECT_EQ(limited.one().get<std::string>("outcome"), "daily_limit");
  EXPECT_EQ(limited.one().get<std::int64_t>("used_today"), 10);
  EXPECT_EQ(limited.one().get<std::int64_t>("daily_limit"), 50);
  EXPECT_EQ(outcomes({{1, 2, 40}}), Texts{"completed"}) << "a refused transfer starts no cooldown";
  EXPECT_EQ(outcomes({{1, 2, 1}}), Texts{"cooldown"}) << "a completed transfer starts the cooldown";
}

TEST_F(Sync, is_greedy_within_a_set_and_one_bad_item_fails_alone) {
  mint(1, 100);
  EXPECT_EQ(outcomes({{1, 2, 150}, {1, 2, 40}, {1, 1, 5}, {1, 2, 0}, {1, 0, 5}, {1, 2, 50}, {1, 2, 11}}),
            (Texts{"insufficient_balance", "completed", "invalid", "invalid", "invalid", "completed",
                   "insufficient_balance"}));
  EXPECT_EQ(account(1), "10/0");
  EXPECT_EQ(account(0), "-100/0");
}

// Each item runs as if alone: money received by earlier items may be spent, money of later items may not.
TEST_F(Sync, goes_through_a_set_in_order) {
  mint(1, 100);
  EXPECT_EQ(outcomes({{2, 3, 60}, {1, 2, 80}, {2, 3, 60}, {3, 4, 50}, {4, 5, 51}}),
            (Texts{"insufficient_balance", "completed", "completed", "completed", "insufficient_balance"}));
  EXPECT_EQ(account(2), "20/0");
  EXPECT_EQ(account(3), "10/0");
  EXPECT_EQ(account(4), "50/0");
  EXPECT_EQ(audit(), "");
}

TEST_F(Sync, follows_money_through_a_set_to_its_end) {
  mint(1, 100);
  std::vector<Wish> line;
  for (std::int64_t member = 1; member <= 400; ++member) line.push_back({member, member + 1, 100});
  EXPECT_EQ(std::ranges::count(outcomes(line), "completed"), 400);
  EXPECT_EQ(account(401), "100/0");
  EXPECT_EQ(audit(), "");
}

// A node notifies after the commit: commits that notify wait for each other.
TEST_F(Sync, a_set_sends_no_notification_within_its_commit_and_a_call_by_hand_wakes_the_nodes) {
  Ear events(db.dsn(), "economy_events");
  Ear work(db.dsn(), "economy_work");
  Ear log(db.dsn(), "event_log");
  mint(1, 100);
  insert(2, 3, 10);
  events.take();
  work.take();
  log.take();
  const auto set = admin.must(
      "SELECT woken FROM economy.fn_transfer_set('{7,7}', '{1,2}', '{1}', '{2}', '{10}', "
      "ARRAY[gen_random_uuid()], '{NULL}', '{NULL}', '{NULL}', true, true)");
  EXPECT_EQ(set.one().get<int>("woken"), 1);
  EXPECT_TRUE(events.take().empty());
  EXPECT_TRUE(work.take().empty());
  EXPECT_TRUE(log.take().empty());
  tamper("UPDATE economy.transfer_work SET due_at = '9000-01-01'");
  EXPECT_EQ(column(transfer_now({{1, 2, 50}, {1, 2, 500}}), "woken"), (Texts{"1", "1"}));
  EXPECT_EQ(work.take().size(), 1U);
  EXPECT_EQ(log.take().size(), 1U);
  insert(1, 2, 1);
  EXPECT_EQ(log.take().size(), 1U);
}

TEST_F(Sync, one_key_is_one_transfer) {
  mint(1, 100);
  const Wish wish{.from = 1, .to = 2, .amount = 10, .key = "k", .reason = "rent"};
  auto other = wish;
  other.amount = 11;
  auto otherwise = wish;
  otherwise.reason = "gift";
  const auto first = transfer_now({wish, wish, other, {.from = 3, .to = 2, .amount = 1, .key = "k"}});
  EXPECT_EQ(column(first, "outcome"), (Texts{"completed", "existing", "conflict", "insufficient_balance"}));
  const auto again = transfer_now({wish, other, otherwise});
  EXPECT_EQ(column(again, "outcome"), (Texts{"existing", "conflict", "conflict"}));
  for (const auto* same : {"transfer_id", "ledger_id", "initiator_balance", "target_balance", "created_at", "status"}) {
    EXPECT_EQ(again[0].get<std::string>(same), first[0].get<std::string>(same)) << same;
    EXPECT_EQ(first[1].get<std::string>(same), first[0].get<std::string>(same)) << same;
  }
  EXPECT_EQ(account(1), "90/0");
}

TEST_F(Sync, a_refusal_does_not_use_the_key_up) {
  const Wish wish{.from = 1, .to = 2, .amount = 10, .key = "k"};
  EXPECT_EQ(outcomes({wish, wish}), (Texts{"insufficient_balance", "insufficient_balance"}));
  mint(1, 10);
  EXPECT_EQ(outcomes({wish}), Texts{"completed"});
}

TEST_F(Sync, a_key_of_the_pool_is_the_same_key) {
  mint(1, 100);
  const Wish wish{.from = 1, .to = 2, .amount = 10, .key = "k"};
  const auto pooled = create({wish});
  EXPECT_EQ(column(pooled, "outcome"), Texts{"created"});
  auto answer = transfer_now({wish});
  EXPECT_EQ(answer.one().get<std::string>("outcome"), "existing");
  EXPECT_EQ(answer.one().get<std::string>("status"), "approved");
  EXPECT_TRUE(answer.one().is_null("ledger_id"));
  EXPECT_EQ(process(), 1);
  answer = transfer_now({wish});
  EXPECT_EQ(answer.one().get<std::string>("status"), "completed");
  EXPECT_FALSE(answer.one().is_null("ledger_id"));
  EXPECT_EQ(answer.one().get<Uuid>("transfer_id"), pooled.one().get<Uuid>("transfer_id"));
  EXPECT_EQ(account(1), "90/0");
}

TEST_F(Sync, a_key_of_the_synchronous_mode_is_the_same_key_in_the_pool) {
  mint(1, 100);
  Wish wish{.from = 1, .to = 2, .amount = 10, .key = "k"};
  const auto done = transfer_now({wish});
  auto answer = create({wish, wish});
  EXPECT_EQ(column(answer, "outcome"), (Texts{"existing", "existing"}));
  EXPECT_EQ(answer[0].get<std::string>("status"), "completed");
  EXPECT_EQ(answer[0].get<Uuid>("transfer_id"), done.one().get<Uuid>("transfer_id"));
  wish.to = 3;
  EXPECT_EQ(column(create({wish}), "outcome"), Texts{"conflict"});
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.pending_transfers"), 0);
}

TEST_F(Sync, creating_in_the_pool_finds_keys_in_the_set_and_refuses_only_invalid_items) {
  mint(1, 100);
  const Wish wish{.from = 1, .to = 2, .amount = 10, .key = "k"};
  auto other = wish;
  other.amount = 11;
  const auto rows = create({wish, {1, 1, 5}, wish, other, {1, 2, -1}, {1, 2, 20}});
  EXPECT_EQ(column(rows, "outcome"), (Texts{"created", "invalid", "existing", "conflict", "invalid", "created"}));
  EXPECT_EQ(column(rows, "status"), (Texts{"approved", "-", "approved", "approved", "-", "approved"}));
  EXPECT_EQ(rows[2].get<Uuid>("transfer_id"), rows[0].get<Uuid>("transfer_id"));
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.pending_transfers"), 2);
}

TEST_F(Sync, the_single_function_raises_if_it_has_no_id_to_return) {
  constexpr std::string_view kOne =
      "SELECT economy.fn_create_pending_transfer(7, 1, $1, $2, p_idempotency_key => 'k', p_expires_hours => 2)";
  const auto id = admin.value<std::string>(kOne, pg::Params::of(2, 10));
  EXPECT_EQ(admin.value<std::string>(kOne, pg::Params::of(2, 10)), id);
  EXPECT_EQ(admin.ask(kOne, pg::Params::of(2, 11)).sqlstate, "23505");
  EXPECT_EQ(admin.ask(kOne, pg::Params::of(1, 10)).sqlstate, "23514");
  EXPECT_TRUE(
      admin.value<bool>("SELECT expires_at BETWEEN now() + interval '1 hour' AND now() + interval '2 hours' "
                        "FROM economy.pending_transfers"));
}

TEST_F(Sync, an_insert_by_hand_cannot_use_a_key_again) {
  mint(1, 100);
  create({{.from = 1, .to = 2, .amount = 10, .key = "k"}});
  EXPECT_EQ(admin
                .ask("INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount, "
                     "idempotency_key) VALUES (7, 1, 2, 10, 'k')")
                .sqlstate,
            "23505");
  transfer_now({{.from = 1, .to = 2, .amount = 10, .key = "now"}});
  EXPECT_EQ(admin
                .ask("INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount, "
                     "idempotency_key) VALUES (7, 1, 2, 10, 'now')")
                .sqlstate,
            "23505")
      << "a key of the other mode counts too";
}

}  // namespace
}  // namespace fencepost::transfer
