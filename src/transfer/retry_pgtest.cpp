// A transfer that fails its checks: counted retries, early attempts that do not count, expiry, cancelling.
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

class Retry : public EconomyTest {
 protected:
  double next_attempt_in(const Uuid& id) { return in(id, "next_attempt_at"); }
  double due_in(const Uuid& id) { return in(id, "due_at"); }

  // Seconds from the transfer's last update to the time in `column`.
  double in(const Uuid& id, const std::string& column) {
    return admin.value<double>(
        fmt::format("SELECT extract(epoch FROM w.{} - p.updated_at) FROM economy.transfer_work AS w "
                    "JOIN economy.pending_transfers AS p USING (transfer_id) WHERE transfer_id = $1",
                    column),
        pg::Params::of(id));
  }
  std::int64_t tries_heard() {
    std::int64_t tries = 0;
    for (const auto& event : ear.take_json()) {
      if (event.at("event_type") == "transfer_check_result" && event.at("check_type") == "balance") ++tries;
    }
    return tries;
  }
  std::vector<Uuid> insert_many(int n, std::int64_t amount) {
    std::vector<Uuid> ids;
    ids.reserve(n);
    for (int i = 0; i < n; ++i) ids.push_back(insert(1, 2, amount));
    return ids;
  }

  Ear ear{db.dsn(), "economy_events"};
};

TEST_F(Retry, comes_after_1_2_4_to_300_seconds_and_ten_times) {
  const auto id = insert(1, 2, 5);
  ear.take();
  for (int retry = 0; retry < 10; ++retry) {
    SCOPED_TRACE(retry);
    EXPECT_EQ(state(id), fmt::format("checking {}", retry));
    const double delay = std::min(std::exp2(retry), 300.0);
    EXPECT_GE(next_attempt_in(id), delay - 0.001);
    EXPECT_LE(next_attempt_in(id), delay * 1.1 + 0.001);
    pass(fmt::format("{} s", delay - 0.5));
    EXPECT_EQ(admin.must(kProcess).one().get<std::int64_t>("claimed"), 0) << "not yet";
    pass(fmt::format("{} s", delay * 0.1 + 0.5));
    EXPECT_EQ(admin.must(kProcess).one().get<std::int64_t>("claimed"), 1);
    if (retry < 9) EXPECT_EQ(ear.take().size(), 3U) << "each attempt is announced";
  }
  EXPECT_EQ(state(id), "rejected transfer_checks_failed");
  const auto denied = ear.take_json().back();
  EXPECT_EQ(denied, boost::json::parse(fmt::format(
                        R"({{"event_type": "transaction_denied", "reason": "transfer_checks_failed",
                             "transfer_id": "{}", "guild_id": 7, "initiator_id": 1, "target_id": 2, "amount": 5}})",
                        id.to_string())));
  EXPECT_EQ(outbox(id), Texts{"TransferDenied"});
  EXPECT_EQ(admin.value<std::int64_t>("SELECT retry_count FROM economy.pending_transfers"), 10);
  EXPECT_EQ(checks(id), "011");
  EXPECT_EQ(audit(), "");
}

TEST_F(Retry, only_ever_jitters_upwards_and_by_a_tenth) {
  EXPECT_TRUE(admin.value<bool>(
      "SELECT bool_and(extract(epoch FROM economy._backoff(n % 12)) / least(2 ^ (n % 12), 300) BETWEEN 1 AND 1.1) "
      "AND count(DISTINCT economy._backoff(3)) > 1000 FROM generate_series(0, 1200) AS n"));
}

TEST_F(Retry, limit_is_the_guilds_and_zero_means_none) {
  settings(R"({"max_retries": 0})");
  EXPECT_EQ(state(insert(1, 2, 5)), "rejected transfer_checks_failed");
  settings(R"({"max_retries": 1})");
  const auto id = insert(1, 2, 5);
  pass("2 s");
  process();
  EXPECT_EQ(state(id), "rejected transfer_checks_failed");
  EXPECT_EQ(audit(), "");
}

TEST_F(Retry, is_woken_by_a_credit_from_a_transfer_a_minting_and_the_synchronous_mode) {
  mint(3, 100);
  const auto by_pool = insert(1, 2, 10);
  insert(3, 1, 10);
  EXPECT_EQ(process(), 2);
  EXPECT_EQ(state(by_pool), "completed");

  const auto by_sync = insert(1, 2, 20);
  EXPECT_EQ(column(transfer_now({{3, 1, 20}}), "woken"), Texts{"1"});
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(by_sync), "completed");

  const auto by_mint = insert(1, 2, 30);
  mint(1, 30);
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(by_mint), "completed");
}

TEST_F(Retry, an_early_attempt_counts_no_retry_and_keeps_the_next_one) {
  const auto first = insert(1, 2, 50);
  const auto id = insert(1, 2, 40);
  const auto appointment = next_attempt_in(id);
  const auto next_attempt = [&] {
    return admin.value<std::string>("SELECT next_attempt_at::text FROM economy.transfer_work WHERE transfer_id = $1",
                                    pg::Params::of(id));
  };
  const auto at = next_attempt();
  ear.take();
  mint(1, 50);
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(first), "completed");
  EXPECT_EQ(tries_heard(), 2) << "the early attempts took place";
  EXPECT_EQ(state(id), "checking 0");
  EXPECT_EQ(next_attempt(), at);
  EXPECT_GT(appointment, 0.9);
}

TEST_F(Retry, that_finds_only_the_days_limit_in_the_way_waits_for_the_end_of_the_day) {
  settings(R"({"daily_limit": 10})");
  const auto id = insert(1, 2, 50);
  mint(1, 50);
  EXPECT_EQ(process(), 0);
  EXPECT_EQ(state(id), "checking 0");
  EXPECT_EQ(checks(id), "110") << "the failed check has changed";
  EXPECT_TRUE(
      admin.value<bool>("SELECT next_attempt_at = economy._day_ends(clock_timestamp()) AND due_at = next_attempt_at "
                        "FROM economy.transfer_work"));
}

TEST_F(Retry, goes_by_the_balance_when_the_limit_is_gone_before_its_time) {
  settings(R"({"daily_limit": 10})");
  mint(1, 50);
  const auto id = insert(1, 2, 50);
  ASSERT_EQ(checks(id), "110");
  burn(1, 20);
  settings(R"({"daily_limit": null})");
  process();
  EXPECT_EQ(checks(id), "011");
  EXPECT_EQ(state(id), "checking 0");
  EXPECT_LE(next_attempt_in(id), 1.2) << "the first retry, and not the end of the day";
  pass("2 s");
  process();
  EXPECT_EQ(state(id), "checking 1");
}

TEST_F(Retry, is_not_used_up_by_tiny_credits) {
  const auto id = insert(1, 2, 1'000);
  mint(3, 1'000);
  ear.take();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(column(transfer_now({{3, 1, 1}}), "woken"), Texts{"0"});
    process();
  }
  EXPECT_EQ(tries_heard(), 0) << "a transfer that cannot pass is not tried";
  EXPECT_EQ(state(id), "checking 0");
}

TEST_F(Retry, takes_the_first_sixteen_of_a_payer_when_it_is_credited) {
  const auto ids = insert_many(40, 10);
  ear.take();
  mint(1, 10);
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.transfer_work WHERE due_at <= clock_timestamp()"),
            16);
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(tries_heard(), 16);
  EXPECT_EQ(state(ids[0]), "completed");
  for (int i = 1; i < 40; ++i) EXPECT_EQ(state(ids[static_cast<std::size_t>(i)]), "checking 0");
}

// A set completes transfers before it checks others.
TEST_F(Retry, finds_money_that_the_same_set_brings) {
  mint(3, 100);
  const auto poor = insert(1, 2, 10);
  insert(3, 1, 10);
  pass("2 s");
  const auto done = admin.must(kProcess);
  EXPECT_EQ(done.one().get<int>("completed"), 1);
  EXPECT_EQ(done.one().get<int>("approved"), 1);
  EXPECT_EQ(state(poor), "approved");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(audit(), "");
}

TEST_F(Retry, stops_after_sixteen_early_failures_of_each_payer) {
  for (int i = 0; i < 20; ++i) {
    insert(1, 3, 10);
    insert(2, 3, 10);
  }
  tamper(
      "UPDATE economy.transfer_work SET due_at = clock_timestamp(), next_attempt_at = clock_timestamp() + interval '1 "
      "h'");
  ear.take();
  EXPECT_EQ(process(), 0);
  EXPECT_EQ(tries_heard(), 32);
}

// Nothing of these attempts is a retry, and each found something that was not known.
TEST_F(Retry, announces_each_check_whose_result_has_changed) {
  for (int i = 0; i < 20; ++i) insert(1, 3, 10);
  settings(R"({"daily_limit": 5})");
  mint(1, 1'000);
  tamper(
      "UPDATE economy.transfer_work SET due_at = clock_timestamp(), next_attempt_at = clock_timestamp() + interval '1 "
      "h'");
  ear.take();
  EXPECT_EQ(process(), 0);
  EXPECT_EQ(tries_heard(), 20);
  EXPECT_EQ(admin.value<int>("SELECT sum(retry_count) FROM economy.pending_transfers"), 0);
}

TEST_F(Retry, a_credit_does_not_wake_transfers_that_failed_another_check) {
  settings(R"({"daily_limit": 10})");
  mint(1, 100);
  insert(1, 2, 50);
  ear.take();
  mint(1, 100);
  process();
  EXPECT_EQ(tries_heard(), 0);
}

TEST_F(Retry, comes_when_the_cooldown_ends_in_order_and_for_the_first_sixteen) {
  settings(R"({"cooldown_seconds": 100})");
  mint(1, 1'000);
  const auto first = insert(1, 2, 1);
  const auto ids = insert_many(40, 10);
  for (int i = 0; i < 7; ++i) {  // 1 + 2 + … + 64 = 127 s would be the next; the cooldown ends before
    pass("1 s");
    process();
  }
  EXPECT_EQ(state(first), "completed");
  EXPECT_EQ(checks(ids[0]), "101");
  tamper("UPDATE economy.transfer_work SET next_attempt_at = clock_timestamp() + interval '200 s'");
  const auto before = state(ids[1]);
  pass("100 s");
  ear.take();
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(ids[0]), "completed");
  EXPECT_EQ(tries_heard(), 16);
  EXPECT_EQ(state(ids[1]), before);
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM economy.transfer_work WHERE due_at <= clock_timestamp()"),
            0)
      << "the rest wait for the next cooldown's end, or behind those";
  EXPECT_EQ(audit(), "");
}

TEST_F(Retry, is_due_when_the_failed_check_would_pass) {
  settings(R"({"cooldown_seconds": 5, "daily_limit": 100, "max_retries": 20})");  // before midnight, nearly always
  mint(1, 1'000);
  insert(1, 2, 10);
  const auto cooling = insert(1, 2, 10);
  const auto over_limit = insert(1, 2, 95);
  const auto too_much = insert(1, 2, 5'000);
  const auto due = [&](const Uuid& id) {
    return admin.value<std::string>(
        "SELECT CASE WHEN due_at = economy._day_ends(clock_timestamp()) THEN 'midnight' "
        "            WHEN due_at = (SELECT last_transfer_at + interval '5 s' FROM economy.accounts WHERE member_id = "
        "1) "
        "            THEN 'cooldown' WHEN due_at = next_attempt_at THEN 'retry' ELSE due_at::text END "
        "FROM economy.transfer_work WHERE transfer_id = $1",
        pg::Params::of(id));
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(due(cooling), "cooldown");
    EXPECT_EQ(due(over_limit), "midnight") << "the later of the two times at which the failed checks clear";
    EXPECT_EQ(due(too_much), "retry") << "only a credit makes this check pass";
    // Each transfer is tried once more before its time.
    tamper("UPDATE economy.transfer_work SET due_at = clock_timestamp() WHERE NOT approved");
    process();
  }
}

TEST_F(Retry, comes_at_once_when_the_settings_change) {
  settings(R"({"cooldown_seconds": 300, "daily_limit": 10})");
  mint(1, 1'000);
  insert(1, 2, 10);
  const auto cooling = insert(1, 2, 10);
  const auto poor = insert(3, 2, 10);
  process();
  ear.take();
  settings(R"({"cooldown_seconds": 0, "daily_limit": 1000})");
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(cooling), "completed");
  EXPECT_EQ(state(poor), "checking 0");
}

TEST_F(Retry, comes_at_once_when_the_payer_becomes_government) {
  settings(R"({"daily_limit": 10})");
  mint(1, 1'000);
  const auto id = insert(1, 2, 100);
  make_government(1);
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(id), "completed");
}

TEST_F(Retry, ends_when_the_transfer_expires) {
  const auto id = insert(1, 2, 5);
  EXPECT_EQ(expire(), 0);
  ear.take();
  pass("25 hours");
  EXPECT_EQ(expire(), 1);
  EXPECT_EQ(state(id), "rejected transfer_checks_expired");
  EXPECT_EQ(ear.take_json().at(0).at("reason"), "transfer_checks_expired");
  EXPECT_EQ(outbox(id), Texts{"TransferDenied"});
  EXPECT_EQ(expire(), 0);
  EXPECT_EQ(audit(), "");
}

TEST_F(Retry, of_an_expired_transfer_rejects_it) {
  const auto id = insert(1, 2, 5);
  pass("25 hours");
  mint(1, 5);
  EXPECT_EQ(process(), 0);
  EXPECT_EQ(state(id), "rejected transfer_checks_expired");
  EXPECT_EQ(account(1), "5/0");
}

TEST_F(Retry, an_approved_transfer_no_longer_expires) {
  mint(1, 5);
  const auto id = insert(1, 2, 5);
  pass("25 hours");
  EXPECT_EQ(expire(), 0);
  EXPECT_EQ(process(), 1);
  EXPECT_EQ(state(id), "completed");
}

TEST_F(Retry, a_transfer_created_already_expired_is_rejected_at_once) {
  mint(1, 5);
  const auto id = admin.value<Uuid>(
      "INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount, expires_at) "
      "VALUES (7, 1, 2, 5, clock_timestamp() - interval '1 s') RETURNING transfer_id");
  EXPECT_EQ(state(id), "rejected transfer_checks_expired");
  EXPECT_EQ(account(1), "5/0");
  EXPECT_EQ(audit(), "");
}

TEST_F(Retry, can_be_cancelled_until_it_is_approved) {
  const auto id = insert(1, 2, 5);
  ear.take();
  const auto cancel = [&](const Uuid& which) {
    const auto rows = admin.must(kCancel, pg::Params::of(which));
    return fmt::format("{} {}", rows.one().get<std::string>("cancelled"),
                       rows.one().get<std::optional<std::string>>("status").value_or("-"));
  };
  EXPECT_EQ(cancel(id), "t rejected");
  EXPECT_EQ(ear.take_json().at(0).at("reason"), "transfer_cancelled");
  EXPECT_EQ(cancel(id), "f rejected");
  mint(1, 5);
  const auto approved = insert(1, 2, 5);
  EXPECT_EQ(cancel(approved), "f approved");
  process();
  EXPECT_EQ(cancel(approved), "f completed");
  EXPECT_EQ(cancel(Uuid{}), "f -");
  EXPECT_EQ(audit(), "");
}

TEST_F(Retry, comes_for_all_that_wait_when_the_settings_change) {
  mint(1, 1'000);
  mint(2, 1'000);
  settings(R"({"daily_limit": 0})");
  std::vector<Wish> wishes(40, {.from = 1, .to = 3, .amount = 1});
  wishes.push_back({.from = 2, .to = 3, .amount = 1});
  create(wishes);
  settings(R"({"daily_limit": 1000})");
  EXPECT_EQ(process(), 41);
}

}  // namespace
}  // namespace fencepost::transfer
