#include <gtest/gtest.h>

#include "http/message.hpp"
#include "identity/api_key_store.hpp"
#include "identity/key_authenticator.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::identity {
namespace {

using namespace std::chrono_literals;

// The identity module of one node, on a real database.
class Identity : public testing::Test {
 protected:
  ~Identity() override {
    runtime_.run_on(0, database_.stop(2s));
    runtime_.stop();
  }
  void SetUp() override {
    runtime_.start();
    runtime_.run_on(0, database_.start());
  }

  NewKey create(KeyRequest request = {.label = "test", .scopes = {"tx:read", "transfer:write"}}) {
    auto made = make_key(request, ids_.next(), random_).value();
    runtime_.run_on(0, insert(made.key));
    return made;
  }
  awaitable<> insert(const ApiKey& key) {
    ApiKeyStore store(database_.pool());
    co_await store.insert(key);
  }
  awaitable<bool> revoke(const Uuid& id) {
    ApiKeyStore store(database_.pool());
    co_return co_await store.revoke(id);
  }
  awaitable<std::vector<ApiKey>> list() {
    ApiKeyStore store(database_.pool());
    co_return co_await store.list();
  }

  // The authenticator's error code for this header, "ok" when it accepts the key.
  std::string say(KeyAuthenticator& door, std::string_view authorization) {
    http::Request request;
    if (!authorization.empty()) request.add_header("Authorization", authorization);
    const auto answer = runtime_.run_on(0, door.authenticate(request));
    return answer ? "ok" : answer.error().code;
  }
  std::string say(KeyAuthenticator& door, const Secret& key) {
    return say(door, "Bearer " + std::string(key.reveal()));
  }

  test::TestDatabase db_{test::Template::kMigrated};
  Metrics metrics_;
  SystemClock clock_;
  SystemRandom random_;
  UuidGenerator ids_{clock_, random_};
  Runtime runtime_{{.threads = 2}};
  pg::Database database_{runtime_, test::connect_options(db_.dsn()), {}, metrics_};
};

TEST_F(Identity, accepts_only_known_keys) {
  KeyAuthenticator door(database_, clock_, {}, metrics_);
  const auto made = create();
  EXPECT_EQ(say(door, made.text), "ok");
  EXPECT_EQ(say(door, "bEARER " + std::string(made.text.reveal())), "ok");
  EXPECT_EQ(say(door, ""), "no_api_key");
  EXPECT_EQ(say(door, "Basic abc"), "no_api_key");
  EXPECT_EQ(say(door, "Bearer nonsense"), "bad_api_key");
  const auto stranger = make_key({.label = "x", .scopes = {"admin"}}, ids_.next(), random_).value();
  EXPECT_EQ(say(door, stranger.text), "bad_api_key");
}

// On routes with {key:secret}, for clients that take only a URL.
TEST_F(Identity, accepts_a_key_in_the_path_unless_the_header_has_one) {
  KeyAuthenticator door(database_, clock_, {}, metrics_);
  const auto made = create();
  const auto with_path = [&](std::string_view authorization, std::string secret) {
    http::Request request;
    if (!authorization.empty()) request.add_header("Authorization", authorization);
    request.set_path_secret(std::move(secret));
    const auto answer = runtime_.run_on(0, door.authenticate(request));
    return answer ? "ok" : answer.error().code;
  };
  const std::string key(made.text.reveal());
  EXPECT_EQ(with_path("", key), "ok");
  EXPECT_EQ(with_path("Basic abc", key), "ok");
  EXPECT_EQ(with_path("", "nonsense"), "bad_api_key");
  EXPECT_EQ(with_path("Bearer nonsense", key), "bad_api_key");
  EXPECT_EQ(with_path("Bearer " + key, "nonsense"), "ok");
}

TEST_F(Identity, the_principal_is_what_was_stored) {
  KeyAuthenticator door(database_, clock_, {}, metrics_);
  const std::string signer = "0x" + std::string(40, 'a');
  const auto made = create({.label = "Zoë's \"key\"",
                            .scopes = {"tx:read", "tx:write"},
                            .signers = std::vector{signer},
                            .guilds = std::vector<std::string>{},
                            .contracts = std::vector{signer}});
  http::Request request;
  request.add_header("Authorization", "Bearer " + std::string(made.text.reveal()));
  const auto principal = runtime_.run_on(0, door.authenticate(request)).value();
  EXPECT_EQ(principal.label, "Zoë's \"key\"");
  EXPECT_TRUE(principal.has_scope("tx:write"));
  EXPECT_FALSE(principal.has_scope("tx:operate"));
  EXPECT_TRUE(principal.allows("signer", signer));
  EXPECT_FALSE(principal.allows("signer", "0x" + std::string(40, 'b')));
  EXPECT_FALSE(principal.allows("guild", "1"));
  EXPECT_TRUE(principal.allows("contract", signer));
  EXPECT_FALSE(principal.allows("contract", "0x" + std::string(40, 'b')));
}

TEST_F(Identity, a_revoked_key_is_refused_once_the_node_is_notified) {
  KeyAuthenticator door(database_, clock_, {.remember = 1h}, metrics_);
  const auto made = create();
  EXPECT_EQ(say(door, made.text), "ok");
  EXPECT_TRUE(runtime_.run_on(0, revoke(made.key.key_id)));
  EXPECT_FALSE(runtime_.run_on(0, revoke(made.key.key_id)));
  door.forget_all();
  EXPECT_EQ(say(door, made.text), "api_key_revoked");
}

TEST_F(Identity, without_the_notification_a_revoked_key_is_refused_when_its_cache_entry_expires) {
  KeyAuthenticator door(database_, clock_, {.remember = 0ms}, metrics_);
  const auto made = create();
  EXPECT_EQ(say(door, made.text), "ok");
  EXPECT_TRUE(runtime_.run_on(0, revoke(made.key.key_id)));
  EXPECT_EQ(say(door, made.text), "api_key_revoked");
}

TEST_F(Identity, expiry_is_checked_for_cached_keys) {
  ManualClock clock(clock_.now());
  KeyAuthenticator door(database_, clock, {.remember = 1h}, metrics_);
  const auto made = create({.label = "short", .scopes = {"admin"}, .expires_at = clock.now() + 10s});
  EXPECT_EQ(say(door, made.text), "ok");
  clock.advance(10s);
  EXPECT_EQ(say(door, made.text), "api_key_expired");
}

TEST_F(Identity, each_key_has_its_own_rate_limit) {
  KeyAuthenticator door(database_, clock_, {.requests_per_second = 1, .burst = 3}, metrics_);
  const auto busy = create();
  const auto calm = create();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(say(door, busy.text), "ok");
  http::Request request;
  request.add_header("Authorization", "Bearer " + std::string(busy.text.reveal()));
  const auto answer = runtime_.run_on(0, door.authenticate(request));
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, "rate_limited");
  EXPECT_EQ(answer.error().retry_after, 1s);
  EXPECT_EQ(say(door, calm.text), "ok");
}

TEST_F(Identity, guessing_is_rate_limited_per_address) {
  KeyAuthenticator door(database_, clock_, {.remember = 0ms, .bad_keys_per_second = 1, .bad_keys_burst = 3}, metrics_);
  const auto resident = create();
  EXPECT_EQ(say(door, resident.text), "ok");
  const auto guess = [&](const std::string& remote) {
    const auto stranger = make_key({.label = "x", .scopes = {"admin"}}, ids_.next(), random_).value();
    http::Request request;
    request.set_remote(remote);
    request.add_header("Authorization", "Bearer " + std::string(stranger.text.reveal()));
    return runtime_.run_on(0, door.authenticate(request)).error().code;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(guess("10.0.0.1"), "bad_api_key");
  EXPECT_EQ(guess("10.0.0.1"), "rate_limited");
  EXPECT_EQ(guess("10.0.0.2"), "bad_api_key");
  EXPECT_EQ(say(door, resident.text), "ok");
}

TEST_F(Identity, the_last_use_is_stored) {
  KeyAuthenticator door(database_, clock_, {}, metrics_);
  const auto made = create();
  EXPECT_EQ(runtime_.run_on(0, list()).at(0).last_used_at, std::nullopt);
  const auto before = clock_.now();
  EXPECT_EQ(say(door, made.text), "ok");
  runtime_.run_on(0, door.save_uses());
  const auto keys = runtime_.run_on(0, list());
  ASSERT_EQ(keys.size(), 1U);
  ASSERT_TRUE(keys[0].last_used_at.has_value());
  EXPECT_GE(*keys[0].last_used_at, before);
}

}  // namespace
}  // namespace fencepost::identity
