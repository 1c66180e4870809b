// Who gets a mail about a change.
#include "notify/notify_test_support.hpp"

namespace fencepost::notify {
namespace {

using Ids = std::vector<std::int64_t>;

class Recipients : public NotifyTest {
 protected:
  Ids by_initiator(const FlowChange& change) {
    Ids out;
    with_pool([&](pg::Pool& pool) -> awaitable<> {
      out = email_ids((co_await find_candidates(pool, {change})).at(0).by_initiator);
    });
    return out;
  }
  // All pages, in their order.
  Ids by_contract(const FlowChange& change) {
    Ids out;
    with_pool([&](pg::Pool& pool) -> awaitable<> {
      auto page = (co_await find_candidates(pool, {change})).at(0).by_contract;
      for (pages_ = 1;; ++pages_) {
        for (const auto& candidate : page.candidates) out.push_back(candidate.email_id);
        if (!page.next) break;
        page = co_await more_candidates(pool, change, *page.next);
      }
    });
    return out;
  }

  int pages_ = 0;
};

TEST_F(Recipients, are_the_person_whose_wallet_queued_the_flow_and_the_one_who_logs_in_as_its_safe) {
  const auto sender = add_subscriber(1), safe = add_subscriber(2);
  add_subscriber(3);
  EXPECT_EQ(by_initiator(queued()), (Ids{sender}));
  auto change = queued();
  change.via = wallet(2);
  EXPECT_EQ(by_initiator(change), (Ids{sender, safe}));
  change.initiator = wallet(99);
  EXPECT_EQ(by_initiator(change), (Ids{safe}));
  change.via = wallet(98);
  EXPECT_EQ(by_initiator(change), Ids{});
}

TEST_F(Recipients, every_verified_address_of_a_person_is_asked_about_by_itself) {
  const auto user = add_user(1);
  subscribe(add_address(user, "a@example.org"));
  subscribe(add_address(user, "b@example.org"), {.notify_on = R"(["executed"])"});
  add_address(user, "c@example.org");  // without a subscription
  subscribe(add_address(user, "d@example.org"));
  EXPECT_EQ(by_initiator(queued()), (Ids{email_id("a@example.org"), email_id("d@example.org")}));
}

struct Silent {
  std::string name;
  Asked asked;
  std::string then = {};  // SQL
};

void PrintTo(const Silent& silent, std::ostream* out) {
  *out << silent.name;
}

class SilentSubscriptions : public Recipients, public ::testing::WithParamInterface<Silent> {};

// Each differs in one thing from a subscription that gets the mail.
TEST_P(SilentSubscriptions, get_nothing) {
  for (const std::string scope : {"initiator", "all"}) {
    auto asked = GetParam().asked;
    asked.scope = scope;
    add_subscriber(scope == "all" ? 2 : 1, asked);
  }
  if (!GetParam().then.empty()) admin.must(GetParam().then);
  auto change = queued();
  change.via = wallet(2);
  EXPECT_EQ(by_initiator(change), Ids{});
  EXPECT_EQ(by_contract(change), Ids{});
  const auto heard = add_subscriber(3, {.scope = "all"});
  change.via = wallet(3);
  EXPECT_EQ(by_initiator(change), (Ids{heard}));
  EXPECT_EQ(by_contract(change), (Ids{heard}));
}

INSTANTIATE_TEST_SUITE_P(
    of, SilentSubscriptions,
    ::testing::Values(Silent{"an_unverified_address", {}, "UPDATE user_emails SET is_verified = false"},
                      Silent{"an_address_that_bounces", {}, "UPDATE emails SET is_deliverable = false"},
                      Silent{"a_paused_subscription", {.active = false}},
                      Silent{"other_statuses", {.notify_on = R"(["ready", "executed", "cancelled", "expired"])"}},
                      Silent{"no_status", {.notify_on = "[]"}},
                      Silent{"the_other_standard", {.standard = "openzeppelin"}},
                      Silent{"another_chain", {.chain_id = 10}},
                      Silent{"another_contract", {.contract = kOtherContract}},
                      Silent{"a_later_beginning", {.since_block = 101}}),
    [](const auto& info) { return info.param.name; });

TEST_F(Recipients, an_event_is_mailed_if_its_block_is_above_the_subscriptions) {
  const Ids both{add_subscriber(1), add_subscriber(2, {.scope = "all"})};
  auto change = queued();
  change.via = wallet(2);
  change.changed_at = at("2020-01-01T00:00:00Z");  // does not count
  for (const auto& [block, heard] :
       std::vector<std::pair<std::int64_t, bool>>{{99, false}, {100, false}, {101, true}}) {
    change.block = block;
    EXPECT_EQ(by_initiator(change), heard ? both : Ids{}) << block;
    EXPECT_EQ(by_contract(change), heard ? Ids{both[1]} : Ids{}) << block;
  }
}

TEST_F(Recipients, a_change_by_the_clock_is_mailed_if_its_due_time_is_after_the_subscriptions) {
  const Ids both{add_subscriber(1), add_subscriber(2, {.scope = "all"})};
  auto change = queued();
  change.via = wallet(2);
  change.to = "ready";
  change.block = std::nullopt;
  for (const auto& [time, heard] : std::vector<std::pair<std::string, bool>>{{"2025-12-31T23:59:59.999999Z", false},
                                                                             {"2026-01-01T00:00:00Z", false},
                                                                             {"2026-01-01T00:00:00.000001Z", true}}) {
    change.changed_at = at(time);
    EXPECT_EQ(by_initiator(change), heard ? both : Ids{}) << time;
    EXPECT_EQ(by_contract(change), heard ? Ids{both[1]} : Ids{}) << time;
  }
}

TEST_F(Recipients, subscriptions_to_all_flows_do_not_need_the_initiator) {
  const auto own = add_subscriber(1), all = add_subscriber(2, {.scope = "all"});
  EXPECT_EQ(by_contract(queued()), (Ids{all}));
  EXPECT_EQ(by_initiator(queued()), (Ids{own}));
}

TEST_F(Recipients, filters_come_with_the_candidate) {
  const auto filters = fmt::format(R"({{"targets": ["{}"]}})", kOtherContract);
  add_subscriber(1, {.scope = "all", .filters = filters});
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    const auto found = (co_await find_candidates(pool, {queued()})).at(0);
    for (const auto& candidate : {found.by_initiator.at(0), found.by_contract.candidates.at(0)}) {
      EXPECT_EQ(candidate.filters, (NotifyFilters{.targets = {kOtherContract}, .functions = {}}));
    }
  });
}

// 2,500 people; those from `first` to `last` do not ask for the change.
class ManyRecipients : public Recipients {
 protected:
  void add_many(int first_silent, int last_silent) {
    admin.must(
        "INSERT INTO users (wallet_address) SELECT '0x' || lpad(to_hex(n), 40, '0') FROM generate_series(1, 2500) AS "
        "n");
    admin.must("INSERT INTO emails (email) SELECT 'p' || n || '@example.org' FROM generate_series(1, 2500) AS n");
    admin.must(
        "INSERT INTO user_emails (user_id, email_id, is_verified) SELECT u.id, e.id, true FROM users AS u JOIN emails "
        "AS e "
        "USING (id) ORDER BY u.id");
    admin.must(
        "INSERT INTO user_email_subscriptions (user_email_id, timelock_standard, chain_id, contract_address, "
        "notify_on, "
        "scope, since_block, since_timestamp) SELECT id, 'compound', 1, $1, CASE WHEN id BETWEEN $2 AND $3 "
        "THEN '[]' ELSE '[\"waiting\"]' END::jsonb, 'all', 100, '2026-01-01' FROM user_emails ORDER BY -id",
        pg::Params::of(kContract, first_silent, last_silent));
    for (int i = 1; i <= 2500; ++i) {
      if (i < first_silent || i > last_silent) expected_.push_back(i);
    }
  }
  Ids expected_;
};

TEST_F(ManyRecipients, come_once_each_over_the_pages) {
  add_many(0, 0);
  EXPECT_EQ(by_contract(queued()), expected_);
  EXPECT_EQ(pages_, 3);
}

TEST_F(ManyRecipients, come_also_after_a_page_of_subscriptions_that_do_not_ask) {
  add_many(501, 2400);  // the second page has none that asks
  EXPECT_EQ(by_contract(queued()), expected_);
}

TEST_F(ManyRecipients, are_all_found_when_the_last_page_is_full) {
  add_many(0, 0);
  admin.must("DELETE FROM user_emails WHERE id > 2000");
  expected_.resize(2000);
  EXPECT_EQ(by_contract(queued()), expected_);
}

}  // namespace
}  // namespace fencepost::notify
