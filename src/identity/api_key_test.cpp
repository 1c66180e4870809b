#include "identity/api_key.hpp"

#include <gtest/gtest.h>

namespace fencepost::identity {
namespace {

const Uuid kId = Uuid::parse("0192f3a0-1111-7222-8333-444455556666").value();

NewKey make(KeyRequest request = {.label = "test", .scopes = {"tx:read"}}) {
  SeededRandom random(1);
  return make_key(request, kId, random).value();
}

TEST(api_key, a_new_key_is_accepted) {
  const auto made = make();
  const auto presented = parse_key(made.text.reveal());
  ASSERT_TRUE(presented.has_value());
  EXPECT_EQ(presented->key_id, kId);
  EXPECT_TRUE(check_key(made.key, *presented, TimePoint{}).has_value());
}

TEST(api_key, another_secret_is_refused) {
  const auto made = make();
  std::string text(made.text.reveal());
  text.back() = text.back() == '0' ? '1' : '0';
  const auto presented = parse_key(text);
  ASSERT_TRUE(presented.has_value());
  EXPECT_EQ(check_key(made.key, *presented, TimePoint{}).error().code, "bad_api_key");
}

TEST(api_key, revoked_and_expired_keys_have_their_own_error_codes) {
  auto made = make();
  const auto presented = parse_key(made.text.reveal()).value();
  const TimePoint noon{std::chrono::hours{12}};
  made.key.expires_at = noon;
  EXPECT_TRUE(check_key(made.key, presented, noon - std::chrono::microseconds{1}).has_value());
  EXPECT_EQ(check_key(made.key, presented, noon).error().code, "api_key_expired");
  made.key.revoked_at = noon;
  EXPECT_EQ(check_key(made.key, presented, noon).error().code, "api_key_revoked");
}

TEST(api_key, text_of_another_form_is_not_a_key) {
  const std::string good(make().text.reveal());
  std::string upper = good;
  upper[5] = 'A';
  std::string no_gap = good;
  no_gap[3 + 32] = '-';
  for (const auto& text : {std::string{}, std::string("fp_"), good + "0", good.substr(1), upper, no_gap,
                           std::string(84, 'f'), std::string("fp_") + std::string(81, '_')}) {
    EXPECT_EQ(parse_key(text).error().code, "bad_api_key") << text;
  }
}

TEST(api_key, an_invalid_key_request_is_refused) {
  SeededRandom random(1);
  const struct {
    KeyRequest request;
    std::string code;
  } cases[] = {
      {{.label = "", .scopes = {"admin"}}, "bad_label"},
      {{.label = std::string(101, 'x'), .scopes = {"admin"}}, "bad_label"},
      {{.label = "two\nlines", .scopes = {"admin"}}, "bad_label"},
      {{.label = "a", .scopes = {}}, "bad_scope"},
      {{.label = "a", .scopes = {"tx"}}, "bad_scope"},
      {{.label = "a", .scopes = {"tx:delete"}}, "bad_scope"},
      {{.label = "a", .scopes = {"tx:read", "txs:read"}}, "bad_scope"},
      {{.label = "a", .scopes = {"admin"}, .signers = std::vector<std::string>{"0xABC"}}, "bad_signer"},
      {{.label = "a", .scopes = {"admin"}, .guilds = std::vector<std::string>{"-1"}}, "bad_guild"},
      {{.label = "a", .scopes = {"admin"}, .guilds = std::vector<std::string>{"007"}}, "bad_guild"},
      {{.label = "a", .scopes = {"admin"}, .guilds = std::vector<std::string>{"0"}}, "bad_guild"},
      {{.label = "a", .scopes = {"admin"}, .contracts = std::vector<std::string>{"0x12"}}, "bad_contract"},
  };
  for (const auto& c : cases) {
    const auto made = make_key(c.request, kId, random);
    ASSERT_FALSE(made.has_value()) << c.code;
    EXPECT_EQ(made.error().code, c.code);
  }
}

TEST(api_key, a_scope_that_no_route_has_is_refused_with_the_list) {
  SeededRandom random(1);
  EXPECT_EQ(make_key({.label = "a", .scopes = {"txs:read"}}, kId, random).error().message,
            "\"txs:read\" is not a scope; did you mean \"tx:read\"?\n"
            "Scopes: admin, tx:read, tx:write, tx:operate, timelock:read, timelock:write, transfer:read, "
            "transfer:write, transfer:operate, mail:read, webhooks:read, webhooks:write, metrics:read");
}

TEST(api_key, a_scope_or_an_id_that_is_listed_twice_counts_once) {
  SeededRandom random(1);
  const auto made = make_key(
      {.label = "a", .scopes = {"tx:write", "tx:read", "tx:write"}, .guilds = std::vector<std::string>{"7", "3", "7"}},
      kId, random);
  EXPECT_EQ(made.value().key.scopes, (std::vector<std::string>{"tx:write", "tx:read"}));
  EXPECT_EQ(made.value().key.guilds, (std::vector<std::string>{"3", "7"}));
  EXPECT_EQ(made.value().key.signers, std::nullopt);
}

}  // namespace
}  // namespace fencepost::identity
