// Addresses and codes when many requests come at once: limits hold, and nothing is added twice.
#include "notify/mail_node_test_support.hpp"
#include "notify/model/verification_code.hpp"
#include "runtime/gather.hpp"

namespace fencepost::notify {
namespace {

using Tally = std::map<std::string, int>;

// Every salt is the same, and so every code.
class OneSalt final : public Random {
 public:
  void fill(std::span<std::byte> out) override { std::ranges::fill(out, std::byte{7}); }
};

class AddressServices : public NotifyTest {
 protected:
  MailNode& start(EmailOptions options = mail_options(), std::unique_ptr<Random> random = nullptr) {
    node_ = std::make_unique<MailNode>(db.dsn(), options, std::move(random));
    return *node_;
  }
  // Runs all calls at once; counts how they ended: "ok" or the code of the error.
  template <class T>
  Tally together(int count, std::function<awaitable<Result<T>>(int)> call) {
    const auto ended = [&](int i) -> awaitable<std::string> {
      const auto result = co_await call(i);
      co_return result ? "ok" : result.error().code;
    };
    Tally out;
    const auto results = node_->run([&]() -> awaitable<std::vector<std::string>> {
      std::vector<awaitable<std::string>> calls;
      for (int i = 0; i < count; ++i) calls.push_back(ended(i));
      co_return co_await gather(std::move(calls));
    });
    for (const auto& result : results) ++out[result];
    return out;
  }
  Tally add_together(int count, std::function<std::int64_t(int)> user, std::function<std::string(int)> email) {
    return together<AddressService::Added>(
        count, [&](int i) { return node_->addresses.add(user(i), email(i), std::nullopt); });
  }
  std::int64_t add(std::int64_t user_id, std::string email) {
    return node_->run([&] { return node_->addresses.add(user_id, email, std::nullopt); }).value().email.id;
  }
  std::string verify(std::int64_t user_id, std::int64_t id, const std::string& code) {
    const auto verified = node_->run([&] { return node_->addresses.verify(user_id, id, code); });
    return verified ? "ok" : verified.error().code;
  }
  // The newest code of a person's address, as its mail would have it.
  std::string code(std::int64_t id) {
    const auto salt = admin.value<pg::Bytes>(
        "SELECT salt FROM email_verification_codes WHERE user_email_id = $1 ORDER BY id DESC LIMIT 1",
        pg::Params::of(id));
    return code_of(node_->emails.secret(), {reinterpret_cast<const char*>(salt.data()), salt.size()});
  }

  std::unique_ptr<MailNode> node_;
};

TEST_F(AddressServices, add_an_address_once_for_requests_at_the_same_time) {
  start();
  const auto user = add_user(1);
  EXPECT_EQ(add_together(16, [=](int) { return user; }, [](int) { return "a@example.org"; }), (Tally{{"ok", 16}}));
  EXPECT_EQ(count("user_emails"), 1);
  EXPECT_EQ(count("email_verification_codes"), 1);
  EXPECT_EQ(count("email_code_request"), 1);
}

TEST_F(AddressServices, give_one_address_to_many_people_at_the_same_time) {
  start();
  std::vector<std::int64_t> users;
  for (int i = 0; i < 8; ++i) users.push_back(add_user(i));
  EXPECT_EQ(add_together(8, [&](int i) { return users[i]; }, [](int) { return "a@example.org"; }), (Tally{{"ok", 8}}));
  EXPECT_EQ(count("emails"), 1);
  EXPECT_EQ(count("user_emails"), 8);
}

TEST_F(AddressServices, send_one_code_in_the_resend_interval) {
  auto& node = start();
  const auto user = add_user(1);
  const auto id = add(user, "a@example.org");
  const auto send = [&](int) { return node.addresses.send_code(user, id); };
  EXPECT_EQ(together<void>(10, send), (Tally{{"code_too_soon", 10}}));
  admin.must("UPDATE email_code_request SET at = at - interval '61 s'");
  EXPECT_EQ(together<void>(10, send), (Tally{{"ok", 1}, {"code_too_soon", 9}}));
  EXPECT_EQ(count("email_verification_codes WHERE NOT is_used"), 1) << "a newer code voids the older one";
}

TEST_F(AddressServices, keep_a_persons_limit_of_codes_in_a_day) {
  auto options = mail_options();
  options.codes_per_user_per_day = 5;
  start(options);
  const auto user = add_user(1);
  EXPECT_EQ(add_together(
                12, [=](int) { return user; }, [](int i) { return fmt::format("a{}@example.org", i); }),
            (Tally{{"ok", 5}, {"too_many_codes", 7}}));
  EXPECT_EQ(count("email_verification_codes"), 5);
}

TEST_F(AddressServices, keep_a_persons_limit_of_addresses) {
  auto options = mail_options();
  options.codes_per_user_per_day = 100;
  start(options);
  const auto user = add_user(1);
  EXPECT_EQ(add_together(
                25, [=](int) { return user; }, [](int i) { return fmt::format("a{}@example.org", i); }),
            (Tally{{"ok", 20}, {"too_many_emails", 5}}));
  EXPECT_EQ(count("user_emails"), 20);
}

TEST_F(AddressServices, keep_an_addresss_limit_of_codes_over_all_people_and_do_not_show_it) {
  auto options = mail_options();
  options.codes_per_address_per_day = 3;
  start(options);
  std::vector<std::int64_t> users;
  for (int i = 0; i < 9; ++i) users.push_back(add_user(i));
  EXPECT_EQ(add_together(9, [&](int i) { return users[i]; }, [](int) { return "a@example.org"; }), (Tally{{"ok", 9}}));
  EXPECT_EQ(count("email_verification_codes WHERE send_status = 'pending'"), 3);
  EXPECT_EQ(count("email_verification_codes WHERE send_status = 'suppressed'"), 6);
  EXPECT_EQ(count("email_verification_codes WHERE send_status = 'suppressed' AND salt IS NOT NULL"), 0)
      << "a salt is for a mail that will be sent";
}

TEST_F(AddressServices, a_code_that_is_not_mailed_cannot_be_guessed) {
  auto options = mail_options();
  options.codes_per_address_per_day = 1;
  start(options, std::make_unique<OneSalt>());
  const auto first = add_user(1), second = add_user(2);
  const auto mailed = add(first, "a@example.org"), not_mailed = add(second, "a@example.org");
  const auto digits = code(mailed);
  EXPECT_EQ(verify(second, not_mailed, digits), "wrong_code") << "the digits that a mail would have had";
  EXPECT_EQ(count("user_emails WHERE is_verified"), 0);
  EXPECT_EQ(verify(first, mailed, digits), "ok");
}

TEST_F(AddressServices, keep_the_secret_where_it_is_when_a_node_prepares_again) {
  auto& node = start();
  const auto* before = &node.emails.secret();
  node.run([&]() -> awaitable<> { co_await node.emails.prepare(node.database.pool()); });
  EXPECT_EQ(&node.emails.secret(), before) << "another thread may hold a reference to it";
}

TEST_F(AddressServices, store_the_same_code_of_two_people_as_different_hashes) {
  start(mail_options(), std::make_unique<OneSalt>());
  const auto mine = add(add_user(1), "a@example.org"), theirs = add(add_user(2), "a@example.org");
  EXPECT_EQ(code(mine), code(theirs));
  EXPECT_EQ(count("(SELECT DISTINCT code_hash FROM email_verification_codes) AS c"), 2);
}

TEST_F(AddressServices, verify_with_the_persons_own_code_until_it_expires) {
  start();
  const auto user = add_user(1), other = add_user(2);
  const auto id = add(user, "a@example.org"), others = add(other, "a@example.org");
  ASSERT_NE(code(id), code(others)) << "one in a million";
  EXPECT_EQ(verify(other, others, code(id)), "wrong_code");
  EXPECT_EQ(verify(other, id, code(id)), "no_such_email");
  admin.must("UPDATE email_verification_codes SET expires_at = clock_timestamp()");
  EXPECT_EQ(verify(user, id, code(id)), "code_expired");
  EXPECT_EQ(count("user_emails WHERE is_verified"), 0);
  admin.must("UPDATE email_verification_codes SET expires_at = clock_timestamp() + interval '1 min'");
  EXPECT_EQ(verify(user, id, code(id)), "ok");
  EXPECT_EQ(count("user_emails WHERE is_verified"), 1);
}

// Verifying locks the person, the code and then the address. A removal that locked the address before the code would
// end one of the two with a deadlock.
TEST_F(AddressServices, remove_an_address_after_a_verification_that_is_under_way) {
  auto& node = start();
  const auto user = add_user(1);
  const auto id = add(user, "a@example.org");
  interleaving::Session verifier(db.dsn(), "verifier");
  verifier.must("BEGIN");
  verifier.must(sql::kLockUser.sql, pg::Params::of(user));
  verifier.must("UPDATE email_verification_codes SET is_used = true");
  const auto removal = [&]() -> awaitable<bool> { co_return (co_await node.addresses.remove(user, id)).has_value(); };
  const auto rest_of_verification = [&]() -> awaitable<bool> {
    asio::steady_timer timer(co_await this_executor());
    for (int i = 0; i < 2000 && count("pg_stat_activity WHERE wait_event_type = 'Lock' "
                                      "AND datname = current_database()") == 0;
         ++i) {
      timer.expires_after(5ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
    verifier.must("UPDATE user_emails SET is_verified = true");
    verifier.must("COMMIT");
    co_return true;
  };
  const auto done = node.run([&]() -> awaitable<std::vector<bool>> {
    std::vector<awaitable<bool>> both;
    both.push_back(removal());
    both.push_back(rest_of_verification());
    co_return co_await gather(std::move(both));
  });
  EXPECT_EQ(done, (std::vector{true, true}));
  EXPECT_EQ(count("user_emails"), 0);
}

TEST_F(AddressServices, use_a_code_once) {
  auto& node = start();
  const auto user = add_user(1);
  const auto id = add(user, "a@example.org");
  const auto right = code(id);
  const auto tally = together<UserEmail>(5, [&](int) { return node.addresses.verify(user, id, right); });
  EXPECT_EQ(tally, (Tally{{"ok", 1}, {"code_expired", 4}}));
  EXPECT_EQ(only("is_used AND salt IS NULL", "email_verification_codes"), "true");
  EXPECT_EQ(verify(user, id, right), "code_expired");
}

}  // namespace
}  // namespace fencepost::notify
