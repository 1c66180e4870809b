#include <future>
#include <set>

#include "tests/support/eventually.hpp"
#include "tests/support/interleaving.hpp"
#include "transfer/routes_test_support.hpp"

namespace fencepost::transfer {
namespace {

namespace json = boost::json;

constexpr auto kPath = "/api/v1/transfers";
constexpr auto kPool = R"(, "mode": "pool")";

class TransferRoutes : public RoutesTest {
 protected:
  static std::string path_of(const Said& created, const std::string& more = {}) {
    return std::string(kPath) + "/" + created.text("transferId") + more;
  }
};

TEST_F(TransferRoutes, a_synchronous_transfer_answers_with_the_balances) {
  mint(100);
  const auto done = post(kPath, transfer(40, R"(, "reason": "rent", "metadata": {"n": 1})"));
  EXPECT_EQ(done.outcome(), "201");
  EXPECT_EQ(done.text("status"), "completed");
  EXPECT_EQ(done.text("mode"), "sync");
  EXPECT_EQ(done.text("initiatorBalance"), "60");
  EXPECT_EQ(done.text("targetBalance"), "40");
  EXPECT_EQ(done.header("Location"), path_of(done));
  const auto looked = get(path_of(done));
  EXPECT_EQ(looked.outcome(), "200");
  EXPECT_EQ(looked.text("ledgerId"), done.text("ledgerId"));
  EXPECT_EQ(looked.text("createdAt"), done.text("createdAt"));
  EXPECT_EQ(looked.text("mode"), "sync");
  EXPECT_EQ(looked.text("reason"), "rent");
  EXPECT_EQ(looked.text("metadata"), R"({"n":1})");
}

TEST_F(TransferRoutes, a_pooled_transfer_is_accepted) {
  mint(100);
  const auto funded = post(kPath, transfer(40, kPool));
  EXPECT_EQ(funded.outcome(), "202");
  EXPECT_EQ(funded.json(),
            (json::object{{"transferId", funded.text("transferId")}, {"status", "approved"}, {"mode", "pool"}}));
  const auto waiting = post(kPath, transfer(400, R"(, "mode": "pool", "expiresHours": 2)"));
  EXPECT_EQ(waiting.outcome(), "202");
  EXPECT_EQ(waiting.text("status"), "checking");
  const auto looked = get(path_of(waiting));
  EXPECT_EQ(looked.text("checks"), R"({"balance":0,"cooldown":0,"daily_limit":1})");
  EXPECT_EQ(looked.text("retryCount"), "0");
  EXPECT_NE(looked.text("nextAttemptAt"), "null");
}

TEST_F(TransferRoutes, the_same_key_is_the_same_transfer) {
  mint(100);
  for (const std::string mode : {"sync", "pool"}) {
    SCOPED_TRACE(mode);
    no_cooldown();
    const auto more = fmt::format(R"(, "mode": "{0}", "idempotencyKey": "{0}-1")", mode);
    const auto first = post(kPath, transfer(10, more));
    const auto again = post(kPath, transfer(10, more));
    EXPECT_EQ(again.outcome(), "200") << again.body;
    EXPECT_EQ(again.json(), first.json());
    const auto other = post(kPath, transfer(11, more));
    EXPECT_EQ(other.outcome(), "409 idempotency_conflict");
    EXPECT_EQ(other.text("transferId"), first.text("transferId"));
  }
}

TEST_F(TransferRoutes, the_header_is_a_key_too) {
  mint(100);
  no_cooldown();
  const auto body = transfer(10, R"(, "mode": "sync")");
  const auto first = post_with_key(kPath, body, "order-1");
  EXPECT_EQ(first.outcome(), "201") << first.body;
  const auto again = post_with_key(kPath, body, "order-1");
  EXPECT_EQ(again.outcome(), "200") << again.body;
  EXPECT_EQ(again.json(), first.json());
  EXPECT_EQ(get("/api/v1/guilds/7/accounts/1").text("balance"), "90") << "the money moved once";
  EXPECT_EQ(get(path_of(first)).text("idempotencyKey"), "order-1");
  const auto in_both = transfer(10, R"(, "mode": "sync", "idempotencyKey": "order-1")");
  EXPECT_EQ(post(kPath, in_both).outcome(), "200") << "header and body carry the same key";
  EXPECT_EQ(post_with_key(kPath, in_both, "order-1").outcome(), "200");
}

TEST_F(TransferRoutes, a_header_that_cannot_be_the_key_is_refused_and_nothing_moves) {
  mint(100);
  no_cooldown();
  const auto body = transfer(10, R"(, "mode": "sync", "idempotencyKey": "order-1")");
  EXPECT_EQ(post_with_key(kPath, body, "order-2").outcome(), "400 idempotency_key_mismatch");
  EXPECT_EQ(post_with_key(kPath, body, std::string(129, 'x')).outcome(), "400 bad_idempotency_key");
  const auto batch = fmt::format(R"({{"items": [{}]}})", body);
  EXPECT_EQ(post_with_key(std::string(kPath) + "/batch", batch, "order-1").outcome(), "400 idempotency_key_in_batch");
  EXPECT_EQ(get("/api/v1/guilds/7/accounts/1").text("balance"), "100");
}

TEST_F(TransferRoutes, a_key_of_the_other_mode_returns_that_transfer) {
  mint(100);
  no_cooldown();
  const auto at_once = post(kPath, transfer(10, R"(, "mode": "sync", "idempotencyKey": "a")"));
  const auto pooled = post(kPath, transfer(10, R"(, "mode": "pool", "idempotencyKey": "b")"));
  const auto first = post(kPath, transfer(10, R"(, "mode": "pool", "idempotencyKey": "a")"));
  EXPECT_EQ(first.outcome(), "200");
  EXPECT_EQ(first.text("transferId"), at_once.text("transferId"));
  EXPECT_EQ(first.text("mode"), "sync");
  EXPECT_EQ(first.text("status"), "completed");
  const auto second = post(kPath, transfer(10, R"(, "mode": "sync", "idempotencyKey": "b")"));
  EXPECT_EQ(second.outcome(), "200");
  EXPECT_EQ(second.text("transferId"), pooled.text("transferId"));
  EXPECT_EQ(second.text("mode"), "pool");
}

TEST_F(TransferRoutes, a_refusal_carries_its_reason_and_figures) {
  mint(1000);
  const auto poor = post(kPath, transfer(1001));
  EXPECT_EQ(poor.outcome(), "422 insufficient_balance");
  EXPECT_EQ(poor.text("balance"), "1000");
  EXPECT_EQ(poor.text("required"), "1001");
  const auto much = post(kPath, transfer(501));
  EXPECT_EQ(much.outcome(), "422 daily_limit");
  EXPECT_EQ(much.text("used"), "0");
  EXPECT_EQ(much.text("limit"), "500");
  ASSERT_EQ(post(kPath, transfer(1)).outcome(), "201");
  const auto soon = post(kPath, transfer(1));
  EXPECT_EQ(soon.outcome(), "422 cooldown");
  EXPECT_NE(soon.text("until"), "-");
  EXPECT_NE(soon.header("Retry-After"), "");
}

TEST_F(TransferRoutes, an_invalid_transfer_is_refused_with_its_field) {
  const std::tuple<std::string, std::string, std::string> cases[] = {
      {transfer(0), "400 bad_request", "amount"},
      {transfer(1, R"(, "targetId": "1")"), "400 bad_json", "-"},  // twice
      {R"({"guildId": "7", "initiatorId": "1", "targetId": "1", "amount": "5"})", "400 invalid_transfer", "targetId"},
      {transfer(1, R"(, "metadata": {"a": "\u0000"})"), "400 bad_request", "metadata"},
      {transfer(1, R"(, "idempotencyKey": "")"), "400 bad_idempotency_key", "idempotencyKey"},
      {"", "400 bad_json", "-"},
  };
  for (const auto& [body, outcome, field] : cases) {
    const auto said = post(kPath, body);
    EXPECT_EQ(said.outcome(), outcome) << body;
    EXPECT_EQ(said.text("field"), field) << body;
  }
  EXPECT_EQ(post("/api/v1/transfers?wait=1", transfer(1)).outcome(), "400 invalid_parameter");
}

TEST_F(TransferRoutes, a_batch_answers_each_item_on_its_own_in_order) {
  mint(100);
  no_cooldown();
  const auto said =
      post("/api/v1/transfers/batch",
           fmt::format(R"({{"items": [{}, {}, {}, {}, 5]}})", transfer(60, R"(, "mode": "sync")"),
                       transfer(60, R"(, "mode": "sync")"), transfer(7, R"(, "mode": "pool")"), transfer(0)),
           {{"7"}});
  ASSERT_EQ(said.outcome(), "200");
  const auto document = said.json();
  const auto& results = document.at("results").as_array();
  ASSERT_EQ(results.size(), 5U);
  EXPECT_EQ(results[0].at("status"), 201);
  EXPECT_EQ(results[0].at("transfer").at("status"), "completed");
  EXPECT_EQ(results[1].at("status"), 422);
  EXPECT_EQ(results[1].at("error").at("code"), "insufficient_balance");
  EXPECT_EQ(results[2].at("status"), 202);
  EXPECT_EQ(results[2].at("transfer").at("mode"), "pool");
  EXPECT_EQ(results[3].at("error").at("field"), "amount");
  EXPECT_EQ(results[4].at("error").at("field"), "item");
}

TEST_F(TransferRoutes, a_list_comes_in_pages_newest_first) {
  std::vector<std::string> made;
  made.reserve(5);
  for (int i = 0; i < 5; ++i) made.push_back(post(kPath, transfer(i + 1, kPool)).text("transferId"));
  ASSERT_EQ(post(std::string(kPath) + "/" + made[2] + "/cancel").outcome(), "200");
  std::vector<std::string> listed;
  std::string cursor;
  int pages = 0;
  for (; cursor != "null" && pages < 10; ++pages) {
    const auto page =
        get(std::string(kPath) + "?guildId=7&limit=2" + (cursor.empty() ? std::string() : "&cursor=" + cursor));
    ASSERT_EQ(page.outcome(), "200") << page.body;
    const auto document = page.json();
    for (const auto& item : document.at("items").as_array()) {
      listed.emplace_back(item.at("transferId").as_string());
    }
    cursor = page.text("nextCursor");
  }
  std::ranges::reverse(made);
  EXPECT_EQ(listed, made);
  EXPECT_EQ(pages, 3);
  const auto rejected = get(std::string(kPath) + "?guildId=7&status=rejected").json();
  ASSERT_EQ(rejected.at("items").as_array().size(), 1U);
  EXPECT_EQ(rejected.at("items").at(0).at("transferId").as_string(), made[2]);
  EXPECT_EQ(get(std::string(kPath) + "?guildId=8").json().at("items").as_array().size(), 0U);
}

TEST_F(TransferRoutes, a_transfer_can_be_cancelled_until_it_is_approved) {
  const auto waiting = post(kPath, transfer(40, kPool));
  const auto cancelled = post(path_of(waiting, "/cancel"), "{}");
  EXPECT_EQ(cancelled.outcome(), "200");
  EXPECT_EQ(cancelled.text("status"), "rejected");
  EXPECT_EQ(cancelled.text("deniedReason"), "transfer_cancelled");
  const auto again = post(path_of(waiting, "/cancel"));
  EXPECT_EQ(again.outcome(), "409 not_cancellable");
  EXPECT_EQ(again.text("transferStatus"), "rejected");
  mint(100);
  no_cooldown();
  EXPECT_EQ(post(path_of(post(kPath, transfer(1, kPool)), "/cancel")).outcome(), "409 not_cancellable");
  EXPECT_EQ(post(path_of(post(kPath, transfer(1, R"(, "mode": "sync")")), "/cancel")).outcome(), "409 not_cancellable");
  EXPECT_EQ(post(path_of(waiting, "/cancel"), R"({"reason": "x"})").outcome(), "400 bad_request");
}

TEST_F(TransferRoutes, an_operator_may_fail_an_approved_transfer) {
  const std::string reason = R"({"reason": "cannot be completed"})";
  mint(100);
  no_cooldown();
  const auto approved = post(kPath, transfer(40, kPool));
  EXPECT_EQ(post(path_of(approved, "/fail")).outcome(), "400 bad_json");
  EXPECT_EQ(post(path_of(approved, "/fail"), "{}").outcome(), "400 bad_request");
  EXPECT_EQ(post(path_of(approved, "/fail"), R"({"reason": "r", "force": true})").outcome(), "400 bad_request");
  EXPECT_EQ(post(path_of(approved, "/fail"), reason, {{"8"}}).outcome(), "404 no_such_transfer");
  const auto failed = post(path_of(approved, "/fail"), reason);
  EXPECT_EQ(failed.outcome(), "200");
  EXPECT_EQ(failed.text("status"), "rejected");
  EXPECT_EQ(failed.text("deniedReason"), "transfer_failed");
  EXPECT_EQ(get("/api/v1/guilds/7/accounts/1").text("reserved"), "0");
  EXPECT_EQ(db.exec("SELECT reason || ' by ' || actor FROM economy.operations WHERE action = 'fail'"),
            "cannot be completed by key-1 (bot)");
  const auto again = post(path_of(approved, "/fail"), reason);
  EXPECT_EQ(again.outcome(), "409 not_failable");
  EXPECT_EQ(again.text("transferStatus"), "rejected");
  const auto waiting = post(kPath, transfer(400, kPool));
  EXPECT_EQ(post(path_of(waiting, "/fail"), reason).text("transferStatus"), "checking");
  const auto done = post(kPath, transfer(1, R"(, "mode": "sync")"));
  EXPECT_EQ(post(path_of(done, "/fail"), reason).text("transferStatus"), "completed");
}

TEST_F(TransferRoutes, a_request_may_bring_its_own_number_of_retries) {
  EXPECT_EQ(post(kPath, transfer(40, R"(, "mode": "pool", "maxRetries": 0)")).text("status"), "rejected");
  EXPECT_EQ(post(kPath, transfer(40, R"(, "mode": "pool", "maxRetries": 3)")).text("status"), "checking");
  EXPECT_EQ(post(kPath, transfer(40, R"(, "mode": "pool", "maxRetries": null)")).text("status"), "checking");
  EXPECT_EQ(post(kPath, transfer(40, kPool)).text("status"), "checking");
  EXPECT_EQ(db.exec("SELECT string_agg(coalesce(max_retries::text, 'guild'), ' ' ORDER BY seq) "
                    "FROM economy.pending_transfers"),
            "0 3 -1 guild");
  EXPECT_EQ(post(kPath, transfer(40, R"(, "mode": "sync", "maxRetries": 3)")).outcome(), "400 bad_request");
}

TEST_F(TransferRoutes, a_transfer_says_how_often_it_is_retried) {
  const auto retries = [&](const std::string& more) {
    return get(path_of(post(kPath, transfer(1, more)))).text("maxRetries");
  };
  EXPECT_EQ(retries(R"(, "mode": "pool", "maxRetries": 3)"), "3");
  EXPECT_EQ(retries(R"(, "mode": "pool", "maxRetries": null)"), "null");
  EXPECT_EQ(retries(kPool), "10") << "the guild's";
  no_cooldown();
  mint(100);
  EXPECT_EQ(retries(R"(, "mode": "sync")"), "0");
  const auto waiting = post(kPath, transfer(400, kPool));
  const auto changed =
      call("PATCH", "/api/v1/guilds/7/settings", R"({"maxRetries": null, "reason": "as long as it takes"})");
  EXPECT_EQ(changed.outcome(), "200");
  EXPECT_EQ(changed.text("maxRetries"), "null");
  EXPECT_EQ(get("/api/v1/guilds/7/settings").text("maxRetries"), "null");
  EXPECT_EQ(get(path_of(waiting)).text("maxRetries"), "null") << "the guild's, as it is now";
}

TEST_F(TransferRoutes, an_unknown_transfer_is_not_found) {
  const auto path = std::string(kPath) + "/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
  EXPECT_EQ(get(path).outcome(), "404 no_such_transfer");
  EXPECT_EQ(post(path + "/cancel").outcome(), "404 no_such_transfer");
}

TEST_F(TransferRoutes, a_key_of_other_guilds_sees_and_does_nothing_here) {
  const auto waiting = post(kPath, transfer(40, kPool));
  const Guilds other{{"8", "70"}};
  EXPECT_EQ(post(kPath, transfer(40), other).outcome(), "403 guild_not_allowed");
  EXPECT_EQ(get(path_of(waiting), other).outcome(), "404 no_such_transfer");
  EXPECT_EQ(post(path_of(waiting, "/cancel"), {}, other).outcome(), "404 no_such_transfer");
  EXPECT_EQ(get(std::string(kPath) + "?guildId=7", other).outcome(), "403 guild_not_allowed");
  EXPECT_EQ(get("/api/v1/transfers/audit", Guilds{{"7"}}).outcome(), "403 guild_not_allowed");
  const auto batch = post("/api/v1/transfers/batch", fmt::format(R"({{"items": [{}]}})", transfer(1)), other).json();
  EXPECT_EQ(batch.at("results").at(0).at("status"), 403);
  EXPECT_EQ(get(path_of(waiting), Guilds{{"7"}}).text("status"), "checking");
}

// An audit may occupy a session for minutes.
TEST_F(TransferRoutes, one_audit_at_a_time) {
  interleaving::Session psql(db.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("LOCK TABLE economy.accounts");
  auto first = std::async(std::launch::async, [&] { return get("/api/v1/transfers/audit"); });
  ASSERT_TRUE(test::eventually(
      [&] { return db.exec("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == "1"; }));
  EXPECT_EQ(get("/api/v1/transfers/audit").outcome(), "409 audit_running");
  psql.must("COMMIT");
  EXPECT_EQ(first.get().outcome(), "200");
  EXPECT_EQ(get("/api/v1/transfers/audit").outcome(), "200");
}

TEST_F(TransferRoutes, the_audit_says_what_is_wrong) {
  mint(100);
  const auto good = get("/api/v1/transfers/audit");
  EXPECT_EQ(good.outcome(), "200");
  EXPECT_EQ(good.text("ok"), "true");
  db.exec("SET session_replication_role = replica; UPDATE economy.accounts SET balance = 101 WHERE member_id = 1");
  const auto bad = get("/api/v1/transfers/audit");
  EXPECT_EQ(bad.text("ok"), "false");
  const auto document = bad.json();
  std::set<std::string> wrong;
  for (const auto& finding : document.at("findings").as_array()) {
    if (finding.at("wrong") != 0) wrong.emplace(finding.at("check").as_string());
    EXPECT_EQ(finding.at("wrong") == 0, finding.at("example").is_null());
  }
  EXPECT_EQ(wrong, (std::set<std::string>{"supply_balances", "balances_are_their_entries"}));
}

TEST_F(TransferRoutes, each_route_has_its_scope) {
  std::map<std::string, std::string> scopes;
  for (const auto& route : router.routes()) {
    scopes[std::string(http::to_string(route.verb)) + route.pattern.substr(7)] = route.access;
  }
  const std::string account = "/guilds/{guildId:id}/accounts/{memberId:id}";
  EXPECT_EQ(scopes, (std::map<std::string, std::string>{
                        {"POST/transfers", "transfer:write"},
                        {"POST/transfers/batch", "transfer:write"},
                        {"POST/transfers/{transferId:uuid}/cancel", "transfer:write"},
                        {"POST/transfers/{transferId:uuid}/fail", "transfer:operate"},
                        {"GET/transfers", "transfer:read"},
                        {"GET/transfers/{transferId:uuid}", "transfer:read"},
                        {"GET/transfers/audit", "transfer:operate"},
                        {"GET" + account, "transfer:read"},
                        {"GET" + account + "/statement", "transfer:read"},
                        {"POST" + account + "/mint", "transfer:operate"},
                        {"POST" + account + "/burn", "transfer:operate"},
                        {"PUT" + account + "/kind", "transfer:operate"},
                        {"GET/guilds/{guildId:id}/settings", "transfer:read"},
                        {"PATCH/guilds/{guildId:id}/settings", "transfer:operate"},
                    }));
}

}  // namespace
}  // namespace fencepost::transfer
