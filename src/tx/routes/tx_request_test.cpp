#include "tx/routes/tx_request.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/error.hpp"
#include "http/request_test_support.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr std::string_view kSigner = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
constexpr std::string_view kChecksummed = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
constexpr std::string_view kCreate =
    R"({"signer": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "requestId": "r-1",
        "payload": {"to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", "value": "1", "gas": 21000}})";

using http::testing::context;
using http::testing::error_from;
using http::testing::get;

CreateBody create_from(const json::value& body, bool request_id_required = true) {
  return read_create(JsonReader(body), request_id_required);
}

// kCreate with one member replaced, or removed when the value is nullopt.
json::value create_with(std::string_view key, std::optional<json::value> value) {
  auto body = json::parse(kCreate);
  if (value) {
    body.as_object()[key] = *value;
  } else {
    body.as_object().erase(key);
  }
  return body;
}

TEST(tx_request, reads_a_create) {
  auto body = json::parse(kCreate);
  body.as_object()["chainId"] = 31337;
  body.as_object()["preflight"] = true;
  const auto create = create_from(body);
  EXPECT_EQ(create.chain_id, 31337);
  EXPECT_EQ(create.signer, kSigner);
  EXPECT_EQ(create.request_id, "r-1");
  EXPECT_EQ(create.payload.gas, 21000U);
  EXPECT_TRUE(create.preflight);
}

TEST(tx_request, chain_and_preflight_may_be_left_out) {
  const auto create = create_from(json::parse(kCreate));
  EXPECT_EQ(create.chain_id, std::nullopt);
  EXPECT_FALSE(create.preflight);
}

TEST(tx_request, a_create_is_refused_with_the_field_that_is_wrong) {
  struct Case {
    std::string key;
    std::optional<json::value> value;
    std::string field;
    std::string code;
  };
  const Case cases[] = {
      {"signer", std::nullopt, "signer", "bad_request"},
      {"signer", 5, "signer", "bad_request"},
      {"signer", "0x12", "signer", "bad_address"},
      {"signer", "0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "signer", "bad_checksum"},
      {"chainId", 0, "chainId", "bad_request"},
      {"chainId", "1", "chainId", "bad_request"},
      {"requestId", std::nullopt, "requestId", "request_id_required"},
      {"requestId", nullptr, "requestId", "request_id_required"},
      {"requestId", 7, "requestId", "bad_request"},
      {"requestId", "", "requestId", "bad_request_id"},
      {"requestId", json::value(std::string(129, 'x')), "requestId", "bad_request_id"},
      {"requestId", json::value(std::string("a\0b", 3)), "requestId", "bad_request_id"},
      {"payload", std::nullopt, "payload", "bad_request"},
      {"payload", json::value{{"value", "1z"}}, "payload.value", "bad_request"},
      {"payload", json::value{{"too", "0x"}}, "payload.too", "bad_request"},
      {"preflight", "yes", "preflight", "bad_request"},
      {"prefligth", true, "prefligth", "bad_request"},
      {"gasLimit", 21000, "gasLimit", "bad_request"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.key + " = " + (c.value ? json::serialize(*c.value) : "absent"));
    const auto body = create_with(c.key, c.value);
    const auto error = error_from([&] { create_from(body); });
    EXPECT_EQ(error.kind, ErrorKind::kInvalid);
    EXPECT_EQ(error.code, c.code);
    EXPECT_EQ(context(error, "field"), c.field);
  }
}

TEST(tx_request, the_request_id_may_be_optional) {
  EXPECT_EQ(create_from(create_with("requestId", std::nullopt), false).request_id, std::nullopt);
  EXPECT_EQ(create_from(create_with("requestId", "given"), false).request_id, "given");
  const auto bad = create_with("requestId", "");
  EXPECT_EQ(error_from([&] { create_from(bad, false); }).code, "bad_request_id");
}

TEST(tx_request, a_batch_does_not_look_into_its_items) {
  const auto body = json::parse(R"({"items": [5, {"signer": 1}, null]})");
  const auto items = read_batch(JsonReader(body));
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(context(error_from([&] { read_create(items[0], true); }), "field"), "item");
  EXPECT_EQ(context(error_from([&] { read_create(items[1], true); }), "field"), "signer");
  EXPECT_EQ(context(error_from([&] { read_create(items[2], true); }), "field"), "item");
}

TEST(tx_request, reads_the_wait_and_its_timeout) {
  EXPECT_FALSE(read_wait(get("/x")));
  const auto plain = read_wait(get("/x?wait=submitted"));
  EXPECT_EQ(plain->what, WaitFor::kSubmitted);
  EXPECT_EQ(plain->timeout, 30s);
  const auto timed = read_wait(get("/x?wait=mined&timeout=2m"));
  EXPECT_EQ(timed->what, WaitFor::kMined);
  EXPECT_EQ(timed->timeout, 120s);
  EXPECT_EQ(read_wait(get("/x?wait=confirmed&timeout=0s"))->timeout, 0s);
}

TEST(tx_request, a_bad_wait_is_refused) {
  for (const auto* target : {"/x?wait=", "/x?wait=soon", "/x?wait=mined&timeout=121s", "/x?wait=mined&timeout=5",
                             "/x?timeout=5s", "/x?wait=mined&wait=mined"}) {
    SCOPED_TRACE(target);
    const auto request = get(target);
    const auto error = error_from([&] { read_wait(request); });
    EXPECT_EQ(error.kind, ErrorKind::kInvalid);
    EXPECT_EQ(error.code, "invalid_parameter");
  }
}

TEST(tx_request, a_list_has_a_limit_of_fifty_by_default) {
  const auto filter = read_filter(get("/x"));
  EXPECT_EQ(filter.limit, 50U);
  EXPECT_FALSE(filter.chain_id || filter.signer || filter.state || filter.before || filter.allowed_signers);
}

TEST(tx_request, reads_a_filter) {
  const std::string cursor = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
  const auto filter =
      read_filter(get("/x?chainId=1&signer=" + std::string(kChecksummed) + "&state=STUCK&limit=200&cursor=" + cursor));
  EXPECT_EQ(filter.chain_id, 1);
  EXPECT_EQ(filter.signer, kSigner);
  EXPECT_EQ(filter.state, "STUCK");
  EXPECT_EQ(filter.limit, 200U);
  EXPECT_EQ(filter.before->to_string(), cursor);
}

TEST(tx_request, a_bad_filter_is_refused_with_the_parameter) {
  const std::pair<std::string, std::string> cases[] = {
      {"chainId=0", "chainId"}, {"chainId=x", "chainId"},     {"signer=0x1", "signer"}, {"state=stuck", "state"},
      {"limit=0", "limit"},     {"limit=201", "limit"},       {"limit=-1", "limit"},    {"cursor=abc", "cursor"},
      {"sgner=0x1", "sgner"},   {"limit=5&limit=6", "limit"}, {"state=", "state"},
  };
  for (const auto& [query, parameter] : cases) {
    SCOPED_TRACE(query);
    const auto request = get("/x?" + query);
    EXPECT_EQ(context(error_from([&] { read_filter(request); }), "parameter"), parameter);
  }
}

TEST(tx_request, a_misspelt_parameter_is_refused_with_a_suggestion) {
  const auto request = get("/x?stat=STUCK");
  EXPECT_NE(error_from([&] { read_filter(request); }).message.find("did you mean \"state\"?"), std::string::npos);
}

TEST(tx_request, reads_a_request_query) {
  const auto query = read_request_query(get("/x?chainId=5&signer=" + std::string(kChecksummed) + "&requestId=a%20b"));
  EXPECT_EQ(query.chain_id, 5);
  EXPECT_EQ(query.signer, kSigner);
  EXPECT_EQ(query.request_id, "a b");
}

TEST(tx_request, a_request_query_needs_a_signer_and_a_request_id) {
  const std::string signer = "signer=" + std::string(kSigner);
  const std::pair<std::string, std::string> cases[] = {{"requestId=r", "signer"},
                                                       {signer, "requestId"},
                                                       {signer + "&requestId=", "requestId"},
                                                       {"signer=me&requestId=r", "signer"}};
  for (const auto& [query, parameter] : cases) {
    SCOPED_TRACE(query);
    const auto request = get("/x?" + query);
    EXPECT_EQ(context(error_from([&] { read_request_query(request); }), "parameter"), parameter);
  }
}

TEST(tx_request, reads_the_id_of_a_forwarded_request) {
  http::Request request;
  EXPECT_EQ(read_forwarded(request), std::nullopt);
  request.add_header("x-fencepost-forwarded", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b");
  EXPECT_EQ(read_forwarded(request)->to_string(), "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b");
}

TEST(tx_request, a_forwarded_id_must_be_a_uuid_of_version_7) {
  for (const auto* text : {"", "yes", "0190a1b2-c3d4-4e5f-8a9b-0c1d2e3f4a5b", "00000000-0000-0000-0000-000000000000"}) {
    SCOPED_TRACE(text);
    http::Request request;
    request.add_header(kForwardedHeader, text);
    EXPECT_EQ(error_from([&] { read_forwarded(request); }).code, "invalid_header");
  }
}

TEST(tx_request, a_hash_is_stored_in_lowercase) {
  const auto hash_of = [](const std::string& text) {
    const json::value body{{"txHash", text}};
    return read_tx_hash(JsonReader(body).field("txHash"));
  };
  EXPECT_EQ(hash_of("0x" + std::string(64, 'A')), "0x" + std::string(64, 'a'));
  for (const auto& bad : {std::string(64, 'a'), "0x" + std::string(63, 'a'), "0x" + std::string(66, 'a'),
                          "0x" + std::string(64, 'g'), std::string()}) {
    SCOPED_TRACE(bad);
    EXPECT_EQ(error_from([&] { hash_of(bad); }).code, "bad_hash");
  }
}

}  // namespace
}  // namespace fencepost::tx
