#include "transfer/transfer_request.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/error.hpp"
#include "http/request_test_support.hpp"

namespace fencepost::transfer {
namespace {

namespace json = boost::json;

constexpr std::string_view kTransfer =
    R"({"guildId": "7", "initiatorId": "9223372036854775807", "targetId": "2", "amount": "100"})";

using http::testing::context;
using http::testing::error_from;
using http::testing::get;

// kTransfer with one member replaced, or removed if there is no value.
json::value transfer_with(std::string_view key, std::optional<json::value> value) {
  auto body = json::parse(kTransfer);
  if (value) {
    body.as_object()[key] = *value;
  } else {
    body.as_object().erase(key);
  }
  return body;
}

json::value nested(std::size_t levels) {
  json::value inner = 1;
  for (std::size_t i = 0; i < levels; ++i) inner = json::object{{"k", std::move(inner)}};
  return inner;
}

TransferBody transfer_from(const json::value& body, Mode default_mode = Mode::kPool) {
  return read_transfer(JsonReader(body), default_mode);
}

TEST(transfer_request, reads_a_transfer) {
  auto body = json::parse(kTransfer);
  auto& members = body.as_object();
  members["reason"] = "rent, März";
  members["metadata"] = json::parse(R"({"order": {"lines": [1, 2.5, null]}})");
  members["expiresHours"] = 8760;
  members["mode"] = "pool";
  members["idempotencyKey"] = "order-17";
  const auto read = transfer_from(body, Mode::kSync);
  EXPECT_EQ(read.mode, Mode::kPool);
  EXPECT_EQ(read.transfer.guild_id, 7);
  EXPECT_EQ(read.transfer.initiator_id, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(read.transfer.target_id, 2);
  EXPECT_EQ(read.transfer.amount, 100);
  EXPECT_EQ(read.transfer.reason, "rent, März");
  EXPECT_EQ(read.transfer.metadata, members.at("metadata").as_object());
  EXPECT_EQ(read.transfer.expires_hours, 8760);
  EXPECT_EQ(read.transfer.idempotency_key, "order-17");
  EXPECT_EQ(read.transfer.transfer_id, Uuid());
}

TEST(transfer_request, most_of_a_transfer_may_be_left_out) {
  const auto body = json::parse(kTransfer);
  const auto read = transfer_from(body, Mode::kSync);
  EXPECT_EQ(read.mode, Mode::kSync);
  EXPECT_EQ(transfer_from(body, Mode::kPool).mode, Mode::kPool);
  EXPECT_EQ(read.transfer.reason, std::nullopt);
  EXPECT_TRUE(read.transfer.metadata.empty());
  EXPECT_EQ(read.transfer.expires_hours, std::nullopt);
  EXPECT_EQ(read.transfer.idempotency_key, std::nullopt);
}

TEST(transfer_request, an_integer_is_taken_while_it_cannot_have_been_rounded) {
  const auto most = std::int64_t{1} << 53;
  EXPECT_EQ(transfer_from(transfer_with("amount", most)).transfer.amount, most);
  EXPECT_EQ(transfer_from(transfer_with("guildId", 7)).transfer.guild_id, 7);
  const auto over = transfer_with("amount", most + 1);
  EXPECT_EQ(context(error_from([&] { transfer_from(over); }), "field"), "amount");
}

TEST(transfer_request, a_transfer_is_refused_with_the_field_that_is_wrong) {
  struct Case {
    std::string key;
    std::optional<json::value> value;
    std::string field;
    std::string code = "bad_request";
  };
  const auto nul = json::value(std::string("a\0b", 3));
  const Case cases[] = {
      {"guildId", std::nullopt, "guildId"},
      {"guildId", "0", "guildId"},
      {"guildId", 0, "guildId"},
      {"initiatorId", "-1", "initiatorId"},
      {"initiatorId", -1, "initiatorId"},
      {"targetId", "x", "targetId"},
      {"targetId", nullptr, "targetId"},
      {"targetId", "9223372036854775807", "targetId", "invalid_transfer"},  // the initiator
      {"amount", std::nullopt, "amount"},
      {"amount", "0", "amount"},
      {"amount", -5, "amount"},
      {"amount", "", "amount"},
      {"amount", "1.5", "amount"},
      {"amount", 1.0, "amount"},
      {"amount", "0x10", "amount"},
      {"amount", "007", "amount"},
      {"amount", " 7", "amount"},
      {"amount", "9223372036854775808", "amount"},
      {"amount", std::numeric_limits<std::uint64_t>::max(), "amount"},
      {"amount", json::array{}, "amount"},
      {"reason", 5, "reason"},
      {"reason", nul, "reason"},
      {"reason", json::value(std::string(501, 'x')), "reason"},
      {"metadata", "text", "metadata"},
      {"metadata", json::array{1}, "metadata"},
      {"metadata", json::value{{"k", std::string(kMetadataMaxBytes, 'x')}}, "metadata"},
      {"metadata", json::value{{"k", nul}}, "metadata"},
      {"metadata", json::value{{"k", json::array(20, 1e300)}}, "metadata"},  // 6 KB of zeros in PostgreSQL
      {"metadata", json::value{{"k", json::array(20, 1e-300)}}, "metadata"},
      {"metadata", nested(kMetadataMaxDepth + 1), "metadata"},
      {"metadata", json::value{{"k", json::array{1, json::object{{"deep", nul}}}}}, "metadata"},
      {"metadata", json::object{{nul.as_string(), 1}}, "metadata"},
      {"expiresHours", 0, "expiresHours"},
      {"expiresHours", 8761, "expiresHours"},
      {"expiresHours", "24", "expiresHours"},
      {"expiresHours", 1.5, "expiresHours"},
      {"maxRetries", -1, "maxRetries"},
      {"maxRetries", 1001, "maxRetries"},
      {"maxRetries", "10", "maxRetries"},
      {"mode", "async", "mode"},
      {"mode", 1, "mode"},
      {"idempotencyKey", 7, "idempotencyKey"},
      {"idempotencyKey", "", "idempotencyKey", "bad_idempotency_key"},
      {"idempotencyKey", json::value(std::string(129, 'x')), "idempotencyKey", "bad_idempotency_key"},
      {"idempotencyKey", "a\nb", "idempotencyKey", "bad_idempotency_key"},
      {"idempotencyKey", nul, "idempotencyKey", "bad_idempotency_key"},
      {"ammount", "1", "ammount"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.key + " = " + (c.value ? json::serialize(*c.value).substr(0, 60) : "absent"));
    const auto body = transfer_with(c.key, c.value);
    const auto error = error_from([&] { transfer_from(body); });
    EXPECT_EQ(error.kind, ErrorKind::kInvalid);
    EXPECT_EQ(error.code, c.code);
    EXPECT_EQ(context(error, "field"), c.field);
  }
}

TEST(transfer_request, limits_are_of_characters_and_bytes) {
  std::string reason;
  for (int i = 0; i < 500; ++i) reason += "€";
  EXPECT_EQ(transfer_from(transfer_with("reason", json::value(reason))).transfer.reason, reason);
  const std::string frame = R"({"k":""})";
  const json::value full{{"k", std::string(kMetadataMaxBytes - frame.size(), 'x')}};
  EXPECT_EQ(transfer_from(transfer_with("metadata", full)).transfer.metadata, full.as_object());
  const auto deep = nested(kMetadataMaxDepth);
  EXPECT_EQ(transfer_from(transfer_with("metadata", deep)).transfer.metadata, deep.as_object());
}

TEST(transfer_request, a_synchronous_transfer_does_not_expire) {
  auto body = transfer_with("expiresHours", 1);
  EXPECT_EQ(transfer_from(body, Mode::kPool).transfer.expires_hours, 1);
  EXPECT_EQ(context(error_from([&] { transfer_from(body, Mode::kSync); }), "field"), "expiresHours");
  body.as_object()["mode"] = "sync";
  EXPECT_EQ(context(error_from([&] { transfer_from(body, Mode::kPool); }), "field"), "expiresHours");
}

TEST(transfer_request, retries_are_the_guilds_or_as_many_as_asked_for_or_until_it_expires) {
  const auto retries = [](const json::value& body) { return transfer_from(body, Mode::kPool).transfer.max_retries; };
  EXPECT_EQ(retries(json::parse(kTransfer)), std::nullopt);
  EXPECT_EQ(retries(transfer_with("maxRetries", 0)), 0);
  EXPECT_EQ(retries(transfer_with("maxRetries", 1000)), 1000);
  EXPECT_EQ(retries(transfer_with("maxRetries", nullptr)), kUntilExpiry);
  const auto body = transfer_with("maxRetries", 3);
  EXPECT_EQ(context(error_from([&] { transfer_from(body, Mode::kSync); }), "field"), "maxRetries");
  EXPECT_EQ(transfer_from(transfer_with("maxRetries", nullptr), Mode::kSync).transfer.max_retries, std::nullopt);
}

TEST(transfer_request, minting_needs_an_amount_and_a_reason) {
  const auto body = json::parse(R"({"amount": "5", "reason": "prize", "idempotencyKey": "k"})");
  const auto read = read_issue(JsonReader(body));
  EXPECT_EQ(read.amount, 5);
  EXPECT_EQ(read.reason, "prize");
  EXPECT_EQ(read.idempotency_key, "k");
  const std::pair<std::string, std::string> cases[] = {
      {R"({"reason": "prize"})", "amount"},
      {R"({"amount": "0", "reason": "prize"})", "amount"},
      {R"({"amount": "5"})", "reason"},
      {R"({"amount": "5", "reason": " "})", "reason"},
      {R"({"amount": "5", "reason": "prize", "memberId": "1"})", "memberId"},
  };
  for (const auto& [text, field] : cases) {
    SCOPED_TRACE(text);
    const auto bad = json::parse(text);
    EXPECT_EQ(context(error_from([&] { read_issue(JsonReader(bad)); }), "field"), field);
  }
}

TEST(transfer_request, settings_change_one_by_one) {
  const auto changes_of = [](std::string_view text) {
    const auto body = json::parse(text);
    return json::serialize(read_settings_change(JsonReader(body)).changes);
  };
  EXPECT_EQ(changes_of(R"({"dailyLimit": null, "reason": "r"})"), R"({"daily_limit":null})");
  EXPECT_EQ(changes_of(R"({"dailyLimit": "0", "reason": "r"})"), R"({"daily_limit":0})");
  EXPECT_EQ(changes_of(R"({"dailyLimit": "9223372036854775807", "reason": "r"})"),
            R"({"daily_limit":9223372036854775807})");
  EXPECT_EQ(changes_of(R"({"cooldownSeconds": 0, "defaultExpiryHours": 1, "maxRetries": 1000, "reason": "r"})"),
            R"({"cooldown_seconds":0,"default_expiry_hours":1,"max_retries":1000})");
}

TEST(transfer_request, a_bad_setting_is_refused_with_its_field) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"reason": "r"})", "body"},
      {R"({"maxRetries": 3})", "reason"},
      {R"({"dailyLimit": "-1", "reason": "r"})", "dailyLimit"},
      {R"({"dailyLimit": 1.5, "reason": "r"})", "dailyLimit"},
      {R"({"cooldownSeconds": null, "reason": "r"})", "cooldownSeconds"},
      {R"({"cooldownSeconds": 31536001, "reason": "r"})", "cooldownSeconds"},
      {R"({"defaultExpiryHours": 0, "reason": "r"})", "defaultExpiryHours"},
      {R"({"maxRetries": 1001, "reason": "r"})", "maxRetries"},
      {R"({"daily_limit": "5", "reason": "r"})", "daily_limit"},
      {R"([])", "body"},
  };
  for (const auto& [text, field] : cases) {
    SCOPED_TRACE(text);
    const auto body = json::parse(text);
    EXPECT_EQ(context(error_from([&] { read_settings_change(JsonReader(body)); }), "field"), field);
  }
}

TEST(transfer_request, an_account_is_of_two_kinds) {
  const auto body = json::parse(R"({"kind": "government", "reason": "elected"})");
  EXPECT_EQ(read_kind(JsonReader(body)).kind, "government");
  const auto bad = json::parse(R"({"kind": "system", "reason": "mine"})");
  EXPECT_EQ(context(error_from([&] { read_kind(JsonReader(bad)); }), "field"), "kind");
}

TEST(transfer_request, reads_which_transfers_to_list) {
  const auto all = read_transfer_query(get("/x?guildId=7"));
  EXPECT_EQ(all.guild_id, 7);
  EXPECT_EQ(all.limit, 50U);
  EXPECT_FALSE(all.status || all.before);
  const auto some = read_transfer_query(get("/x?guildId=7&status=rejected&cursor=31&limit=200"));
  EXPECT_EQ(some.status, TransferStatus::kRejected);
  EXPECT_EQ(some.before, 31);
  EXPECT_EQ(some.limit, 200U);
}

TEST(transfer_request, a_bad_list_is_refused_with_the_parameter) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "guildId"},
      {"guildId=0", "guildId"},
      {"guildId=9223372036854775808", "guildId"},
      {"guildId=7&status=lost", "status"},
      {"guildId=7&cursor=0", "cursor"},
      {"guildId=7&cursor=x", "cursor"},
      {"guildId=7&limit=201", "limit"},
      {"guildId=7&guildId=8", "guildId"},
      {"guildId=7&state=rejected", "state"},
  };
  for (const auto& [query, parameter] : cases) {
    SCOPED_TRACE(query);
    const auto request = get("/x?" + query);
    EXPECT_EQ(context(error_from([&] { read_transfer_query(request); }), "parameter"), parameter);
  }
}

TEST(transfer_request, a_statement_is_csv_when_asked_for) {
  const std::tuple<std::string, std::string, bool> cases[] = {
      {"/x", "", false},
      {"/x", "*/*", false},
      {"/x", "text/csv", true},
      {"/x", "Text/CSV ; header=present, application/json", true},
      {"/x", "application/json, text/csv", false},
      {"/x", "text/html;q=0.9, text/csv, */*;q=0.1", true},
      {"/x", "text/csvx", false},
      {"/x?format=csv", "application/json", true},
      {"/x?format=json", "text/csv", false},
  };
  for (const auto& [target, accept, csv] : cases) {
    SCOPED_TRACE(fmt::format("{} {}", target, accept));
    auto request = get(target);
    if (!accept.empty()) request.add_header("Accept", accept);
    EXPECT_EQ(read_statement_query(request).csv, csv);
  }
}

TEST(transfer_request, the_default_limit_of_csv_is_larger_than_that_of_json) {
  EXPECT_EQ(read_statement_query(get("/x")).limit, 50U);
  EXPECT_EQ(read_statement_query(get("/x?format=csv")).limit, kCsvMaxLines);
  EXPECT_EQ(read_statement_query(get("/x?format=csv&limit=201&cursor=5")).limit, 201U);
  for (const auto* bad :
       {"/x?limit=201", "/x?format=csv&limit=10001", "/x?format=xml", "/x?cursor=-1", "/x?form=csv"}) {
    SCOPED_TRACE(bad);
    const auto request = get(bad);
    EXPECT_EQ(error_from([&] { read_statement_query(request); }).code, "invalid_parameter");
  }
}

TEST(transfer_request, the_path_names_guild_and_member) {
  http::Request request;
  request.set_param("guildId", "7");
  request.set_param("memberId", "0");
  EXPECT_EQ(guild_of(request), 7);
  EXPECT_EQ(member_of(request, 0), 0);
  EXPECT_EQ(context(error_from([&] { member_of(request); }), "parameter"), "memberId");
  http::Request zero;
  zero.set_param("guildId", "0");
  EXPECT_EQ(context(error_from([&] { guild_of(zero); }), "parameter"), "guildId");
}

}  // namespace
}  // namespace fencepost::transfer
