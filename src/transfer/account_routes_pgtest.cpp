#include "transfer/routes_test_support.hpp"

namespace fencepost::transfer {
namespace {

namespace json = boost::json;

const std::string kAccount = "/api/v1/guilds/7/accounts/1";
const std::string kSettings = "/api/v1/guilds/7/settings";

using AccountRoutes = RoutesTest;

TEST_F(AccountRoutes, an_account_shows_balance_and_limits) {
  EXPECT_EQ(get(kAccount).outcome(), "404 no_such_account");
  mint(1000);
  ASSERT_EQ(post("/api/v1/transfers", transfer(40, R"(, "mode": "pool")")).text("status"), "approved");
  const auto account = get(kAccount);
  EXPECT_EQ(account.outcome(), "200");
  EXPECT_EQ(account.text("kind"), "member");
  EXPECT_EQ(account.text("balance"), "1000");
  EXPECT_EQ(account.text("reserved"), "40");
  EXPECT_EQ(account.text("available"), "960");
  EXPECT_EQ(account.text("usedToday"), "40");
  EXPECT_EQ(account.text("dailyLimit"), "500");
  EXPECT_NE(account.text("cooldownUntil"), "null");
}

TEST_F(AccountRoutes, the_guilds_own_account_is_read_only) {
  mint(1000);
  const std::string own = "/api/v1/guilds/7/accounts/0";
  EXPECT_EQ(get(own).text("balance"), "-1000");
  EXPECT_EQ(get(own + "/statement").outcome(), "200");
  EXPECT_EQ(post(own + "/mint", R"({"amount": "1", "reason": "r"})").outcome(), "400 invalid_parameter");
  EXPECT_EQ(call("PUT", own + "/kind", R"({"kind": "member", "reason": "r"})").outcome(), "400 invalid_parameter");
  EXPECT_EQ(get("/api/v1/guilds/7/accounts/-1").outcome(), "400 invalid_parameter");
  EXPECT_EQ(get("/api/v1/guilds/0/settings").outcome(), "400 invalid_parameter");
}

TEST_F(AccountRoutes, an_id_has_one_spelling_in_paths_queries_and_bodies) {
  for (const auto* odd : {"/api/v1/guilds/007/settings", "/api/v1/guilds/7/accounts/01", "/api/v1/transfers?guildId=07",
                          "/api/v1/transfers?guildId=7&cursor=01", "/api/v1/transfers?guildId=7&limit=05"}) {
    EXPECT_EQ(get(odd).outcome(), "400 invalid_parameter") << odd;
  }
  const auto refused =
      post("/api/v1/transfers", R"({"guildId": "07", "initiatorId": "1", "targetId": "2", "amount": "5"})");
  EXPECT_EQ(refused.outcome(), "400 bad_request");
  EXPECT_EQ(refused.text("field"), "guildId");
}

TEST_F(AccountRoutes, minting_and_burning_change_the_supply_and_are_recorded) {
  const auto minted = post(kAccount + "/mint", R"({"amount": "100", "reason": "prize", "idempotencyKey": "m-1"})");
  EXPECT_EQ(minted.outcome(), "201");
  EXPECT_EQ(minted.text("kind"), "mint");
  EXPECT_EQ(minted.text("balance"), "100");
  const auto burnt = post(kAccount + "/burn", R"({"amount": 30, "reason": "fine"})");
  EXPECT_EQ(burnt.outcome(), "201");
  EXPECT_EQ(burnt.text("balance"), "70");
  EXPECT_EQ(
      db.exec("SELECT string_agg(concat_ws(' ', action, guild_id, member_id, reason, actor, detail ->> 'amount'), "
              "', ' ORDER BY operation_id) FROM economy.operations"),
      "mint 7 1 prize key-1 (bot) 100, burn 7 1 fine key-1 (bot) 30");
}

TEST_F(AccountRoutes, minting_twice_by_one_key_mints_once) {
  const std::string body = R"({"amount": "100", "reason": "prize", "idempotencyKey": "m-1"})";
  const auto minted = post(kAccount + "/mint", body);
  const auto again = post(kAccount + "/mint", body);
  EXPECT_EQ(again.outcome(), "200");
  EXPECT_EQ(again.json(), minted.json());
  const auto other = post(kAccount + "/mint", R"({"amount": "101", "reason": "prize", "idempotencyKey": "m-1"})");
  EXPECT_EQ(other.outcome(), "409 idempotency_conflict");
  EXPECT_EQ(other.text("transferId"), minted.text("transferId"));
}

TEST_F(AccountRoutes, the_header_is_a_key_of_minting_and_burning_too) {
  const std::string body = R"({"amount": "100", "reason": "prize"})";
  EXPECT_EQ(post_with_key(kAccount + "/mint", body, "m-1").outcome(), "201");
  EXPECT_EQ(post_with_key(kAccount + "/mint", body, "m-1").outcome(), "200");
  EXPECT_EQ(post_with_key(kAccount + "/burn", body, "b-1").outcome(), "201");
  EXPECT_EQ(post_with_key(kAccount + "/burn", body, "b-1").outcome(), "200");
  EXPECT_EQ(get(kAccount).text("balance"), "0");
  EXPECT_EQ(db.exec("SELECT count(*) FROM economy.operations"), "2");
}

TEST_F(AccountRoutes, an_invalid_mint_or_burn_is_refused) {
  mint(100);
  const auto burnt = post(kAccount + "/burn", R"({"amount": "101", "reason": "fine"})");
  EXPECT_EQ(burnt.outcome(), "422 insufficient_balance");
  EXPECT_EQ(burnt.text("balance"), "100");
  EXPECT_EQ(burnt.text("required"), "101");
  EXPECT_EQ(post(kAccount + "/mint", R"({"amount": "9223372036854775807", "reason": "greed"})").outcome(),
            "422 supply_overflow");
  EXPECT_EQ(post(kAccount + "/mint", R"({"amount": "5"})").text("field"), "reason");
}

TEST_F(AccountRoutes, a_statement_comes_in_pages_newest_first) {
  for (int amount = 1; amount <= 3; ++amount) mint(amount);
  const auto first = get(kAccount + "/statement?limit=2").json();
  ASSERT_EQ(first.at("items").as_array().size(), 2U);
  EXPECT_EQ(first.at("items").at(0).at("amount"), "3");
  EXPECT_EQ(first.at("items").at(0).at("balanceAfter"), "6");
  EXPECT_EQ(first.at("items").at(1).at("amount"), "2");
  const auto last =
      get(kAccount + "/statement?limit=2&cursor=" + std::string(first.at("nextCursor").as_string())).json();
  ASSERT_EQ(last.at("items").as_array().size(), 1U);
  EXPECT_EQ(last.at("items").at(0).at("amount"), "1");
  EXPECT_TRUE(last.at("nextCursor").is_null());
  EXPECT_EQ(get("/api/v1/guilds/7/accounts/9/statement").outcome(), "404 no_such_account");
}

TEST_F(AccountRoutes, a_statement_is_a_csv_when_asked_for) {
  mint(100);
  ASSERT_EQ(post("/api/v1/transfers", transfer(40, R"(, "reason": "=1+1, \"x\"")")).outcome(), "201");
  const auto whole = call("GET", kAccount + "/statement", {}, {}, {{"Accept", "text/csv"}});
  EXPECT_EQ(whole.status, 200U);
  EXPECT_EQ(whole.header("Content-Type"), "text/csv; charset=utf-8; header=present");
  EXPECT_EQ(whole.header("Content-Disposition"), "attachment; filename=\"statement-7-1.csv\"");
  EXPECT_EQ(whole.header("Link"), "");
  EXPECT_EQ(std::ranges::count(whole.body, '\n'), 3) << whole.body;
  EXPECT_NE(whole.body.find(R"(,"'=1+1, ""x""")"), std::string::npos) << whole.body;
  EXPECT_NE(whole.body.find(",transfer,-40,60,2,"), std::string::npos) << whole.body;

  const auto cut = get(kAccount + "/statement?format=csv&limit=1");
  EXPECT_EQ(std::ranges::count(cut.body, '\n'), 2);
  const auto link = cut.header("Link");
  ASSERT_TRUE(link.starts_with("<") && link.ends_with(">; rel=\"next\"")) << link;
  const auto rest = get(link.substr(1, link.find('>') - 1));
  EXPECT_EQ(cut.body + rest.body.substr(rest.body.find('\n') + 1), whole.body);
}

TEST_F(AccountRoutes, settings_are_the_defaults_until_they_are_changed) {
  const json::object defaults{{"guildId", "7"},
                              {"dailyLimit", "500"},
                              {"cooldownSeconds", 300},
                              {"defaultExpiryHours", 24},
                              {"maxRetries", 10}};
  EXPECT_EQ(get(kSettings).json(), defaults);
  const auto changed = call("PATCH", kSettings, R"({"dailyLimit": null, "maxRetries": 3, "reason": "feast"})");
  EXPECT_EQ(changed.outcome(), "200");
  auto expected = defaults;
  expected["dailyLimit"] = nullptr;
  expected["maxRetries"] = 3;
  EXPECT_EQ(changed.json(), expected);
  EXPECT_EQ(get(kSettings).json(), expected);
  const auto most = call("PATCH", kSettings, R"({"dailyLimit": "9223372036854775807", "reason": "feast"})");
  EXPECT_EQ(most.text("dailyLimit"), "9223372036854775807");
  EXPECT_EQ(call("PATCH", kSettings, R"({"reason": "nothing"})").outcome(), "400 bad_request");
  EXPECT_EQ(db.exec("SELECT count(*) FROM economy.operations WHERE action = 'set_settings' AND reason = 'feast' "
                    "AND actor = 'key-1 (bot)'"),
            "2");
}

TEST_F(AccountRoutes, a_government_account_has_no_limits) {
  mint(1000);
  const auto made = call("PUT", kAccount + "/kind", R"({"kind": "government", "reason": "elected"})");
  EXPECT_EQ(made.outcome(), "200");
  EXPECT_EQ(made.text("kind"), "government");
  EXPECT_EQ(made.text("dailyLimit"), "null");
  EXPECT_EQ(post("/api/v1/transfers", transfer(900)).outcome(), "201");
  EXPECT_EQ(post("/api/v1/transfers", transfer(1)).outcome(), "201");
  EXPECT_EQ(call("PUT", kAccount + "/kind", R"({"kind": "system", "reason": "mine"})").text("field"), "kind");
}

TEST_F(AccountRoutes, a_key_of_other_guilds_is_refused) {
  mint(100);
  const Guilds other{{"8"}};
  const std::string issue = R"({"amount": "1", "reason": "r"})";
  for (const auto& said : {get(kAccount, other), get(kAccount + "/statement", other), get(kSettings, other),
                           post(kAccount + "/mint", issue, other), post(kAccount + "/burn", issue, other),
                           call("PUT", kAccount + "/kind", R"({"kind": "government", "reason": "r"})", other),
                           call("PATCH", kSettings, R"({"maxRetries": 1, "reason": "r"})", other)}) {
    EXPECT_EQ(said.outcome(), "403 guild_not_allowed");
  }
  EXPECT_EQ(get(kAccount, Guilds{{"7"}}).text("balance"), "100");
}

}  // namespace
}  // namespace fencepost::transfer
