#include "notify/notify_test_support.hpp"
#include "notify/store/address_store.hpp"
#include "notify/store/subscription_store.hpp"
#include "runtime/gather.hpp"

namespace fencepost::notify {
namespace {

class Subscriptions : public NotifyTest {
 protected:
  static NewSubscription to(std::int64_t user_email_id, std::string contract) {
    return {.user_email_id = user_email_id,
            .contract = {.standard = "compound", .chain_id = 1, .contract = std::move(contract)},
            .notify_on = {"ready"},
            .scope = Scope::kAll,
            .filters = {},
            .since = {.block = 5, .timestamp = at("2026-01-01T00:00:00Z")}};
  }
};

TEST_F(Subscriptions, requests_at_the_same_time_do_not_pass_the_limit_together) {
  const auto user = add_user(1);
  const auto mine = add_address(user, "a@example.org");
  admin.must(
      "INSERT INTO user_email_subscriptions (user_email_id, timelock_standard, chain_id, contract_address, "
      "since_block, "
      "since_timestamp) SELECT $1, 'compound', n, $2, 1, now() FROM generate_series(2, $3) AS n",
      pg::Params::of(mine, kContract, kMaxSubscriptionsOfUser));
  test::with_pool(db.dsn(), {.shared_connections = 8}, [&](pg::Pool& pool) -> awaitable<> {
    std::vector<awaitable<std::optional<AddedSubscription>>> requests;
    for (int i = 0; i < 16; ++i) requests.push_back(add_subscription(pool, user, to(mine, wallet(i))));
    const auto added = co_await gather(std::move(requests));
    EXPECT_EQ(std::ranges::count_if(added, [](const auto& one) { return one.has_value(); }), 1);
  });
  EXPECT_EQ(count("user_email_subscriptions"), kMaxSubscriptionsOfUser);
}

TEST_F(Subscriptions, the_same_request_at_the_same_time_adds_one) {
  const auto user = add_user(1);
  const auto mine = add_address(user, "a@example.org");
  test::with_pool(db.dsn(), {.shared_connections = 8}, [&](pg::Pool& pool) -> awaitable<> {
    std::vector<awaitable<std::optional<AddedSubscription>>> requests;
    for (int i = 0; i < 16; ++i) requests.push_back(add_subscription(pool, user, to(mine, kContract)));
    const auto added = co_await gather(std::move(requests));
    EXPECT_EQ(std::ranges::count_if(added, [](const auto& one) { return one.value().is_new; }), 1);
  });
}

TEST_F(Subscriptions, are_found_changed_and_removed_by_their_person_only) {
  const auto user = add_user(1), other = add_user(2);
  const auto id = subscribe(add_address(user, "a@example.org"));
  subscribe(add_address(other, "a@example.org"));
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    EXPECT_FALSE(co_await find_subscription(pool, other, id));
    EXPECT_FALSE(co_await change_subscription(pool, other, id, {.is_active = false}, {}));
    EXPECT_FALSE(co_await remove_subscription(pool, other, id));
    EXPECT_EQ((co_await find_subscription(pool, user, id))->email, "a@example.org");
    EXPECT_TRUE(co_await change_subscription(pool, user, id, {.scope = Scope::kAll}, {}));
    EXPECT_EQ((co_await find_subscription(pool, user, id))->scope, Scope::kAll);
    EXPECT_TRUE(co_await remove_subscription(pool, user, id));
    EXPECT_FALSE(co_await find_subscription(pool, user, id));
  });
  EXPECT_EQ(count("user_email_subscriptions"), 1);
}

TEST_F(Subscriptions, show_what_is_known_of_an_address_to_the_people_who_verified_it) {
  const auto user = add_user(1), other = add_user(2);
  const auto mine = add_address(user, "a@example.org"), unverified = add_address(other, "a@example.org", false);
  const auto id = subscribe(mine), others = subscribe(unverified);
  admin.must("UPDATE emails SET is_deliverable = false");
  admin.must("UPDATE user_emails SET last_verified_at = '2026-01-05' WHERE is_verified");
  admin.must(
      "INSERT INTO email_verification_codes (user_email_id, code_hash, expires_at, send_status) "
      "SELECT id, sha256('x'), now(), 'dead' FROM user_emails WHERE NOT is_verified");
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    const auto subscription = (co_await find_subscription(pool, user, id)).value();
    EXPECT_FALSE(subscription.is_deliverable);
    EXPECT_EQ(subscription.last_verified_at, at("2026-01-05T00:00:00Z"));
    EXPECT_FALSE((co_await list_emails(pool, user)).at(0).is_deliverable);
    const auto hidden = (co_await list_subscriptions(pool, other, 0, 10)).at(0);
    EXPECT_EQ(hidden.id, others);
    EXPECT_TRUE(hidden.is_deliverable);
    EXPECT_FALSE(hidden.last_verified_at);
    EXPECT_TRUE((co_await list_emails(pool, other)).at(0).is_deliverable)
        << "a code that was refused for another reason says nothing about the address";
  });
}

TEST_F(Subscriptions, begin_anew_when_they_are_resumed_and_only_then) {
  const auto user = add_user(1);
  const auto id = subscribe(add_address(user, "a@example.org"));
  const ChainHead head{.block = 500, .timestamp = at("2026-03-01T00:00:00Z")};
  const auto since = [&] { return only("since_block || ' ' || since_timestamp::date", "user_email_subscriptions"); };
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    for (const bool active : {true, false}) co_await change_subscription(pool, user, id, {.is_active = active}, head);
    EXPECT_EQ(since(), "100 2026-01-01");
    co_await change_subscription(pool, user, id, {.is_active = true}, head);
    EXPECT_EQ(since(), "500 2026-03-01");
  });
}

TEST_F(Subscriptions, are_listed_in_pages_over_all_addresses_of_the_person) {
  const auto user = add_user(1);
  const auto first = add_address(user, "a@example.org"), second = add_address(user, "b@example.org");
  std::vector<std::int64_t> ids;
  for (int chain = 1; chain <= 3; ++chain) {
    ids.push_back(subscribe(first, {.chain_id = chain}));
    ids.push_back(subscribe(second, {.chain_id = chain}));
  }
  subscribe(add_address(add_user(2), "a@example.org"));
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    std::vector<std::int64_t> listed;
    for (int page = 0; page < 3; ++page) {
      for (const auto& one : co_await list_subscriptions(pool, user, listed.empty() ? 0 : listed.back(), 2)) {
        listed.push_back(one.id);
      }
    }
    EXPECT_EQ(listed, ids);
  });
}

TEST_F(Subscriptions, of_all_people_of_an_address_to_a_contract_end_together) {
  std::vector<std::int64_t> shared;
  for (const int number : {1, 2}) shared.push_back(add_address(add_user(number), "team@example.org"));
  for (const auto id : shared) subscribe(id);
  subscribe(shared[0], {.standard = "openzeppelin"});
  subscribe(shared[0], {.contract = kOtherContract});
  subscribe(shared[0], {.chain_id = 10});
  add_subscriber(3);
  const Unsubscribe what{.email_id = email_id("team@example.org"), .chain_id = 1, .contract = kContract};
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    EXPECT_EQ(co_await unsubscribe(pool, what), 3);
    EXPECT_EQ(co_await unsubscribe(pool, what), 0);
  });
  EXPECT_EQ(count("user_email_subscriptions WHERE is_active"), 3);
}

}  // namespace
}  // namespace fencepost::notify
