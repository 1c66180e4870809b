#include "http/request_reader.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/error.hpp"
#include "http/request_test_support.hpp"

namespace fencepost::http {
namespace {

namespace json = boost::json;

using testing::context;
using testing::error_from;

TEST(request_reader, a_body_with_a_repeated_key_is_refused) {
  Request request;
  request.mutable_body() = R"({"signer": "a", "signer": "b"})";
  EXPECT_EQ(error_from([&] { read_body(request); }).code, "bad_json");
  request.mutable_body() = R"({"value": 340282366920938463463374607431768211456})";
  EXPECT_EQ(error_from([&] { read_body(request); }).code, "bad_json");
  request.mutable_body() = R"({"value": "1"})";
  EXPECT_EQ(read_body(request), json::value({{"value", "1"}}));
}

TEST(request_reader, a_batch_is_bounded) {
  const auto batch_of = [](std::size_t count) {
    return json::value{{"items", json::array(count, json::value(json::object()))}};
  };
  const auto full = batch_of(kBatchMaxItems);
  EXPECT_EQ(read_batch(JsonReader(full)).size(), kBatchMaxItems);
  const auto over = batch_of(kBatchMaxItems + 1);
  const auto error = error_from([&] { read_batch(JsonReader(over)); });
  EXPECT_EQ(error.code, "too_many_items");
  EXPECT_EQ(context(error, "field"), "items");
}

TEST(request_reader, a_batch_needs_its_items) {
  for (const auto* text : {"{}", "[]", R"({"items": {}})", R"({"items": [], "more": 1})"}) {
    SCOPED_TRACE(text);
    const auto body = json::parse(text);
    EXPECT_EQ(error_from([&] { read_batch(JsonReader(body)); }).code, "bad_request");
  }
}

TEST(request_reader, a_reason_is_one_to_five_hundred_characters) {
  const auto reason_of = [](json::value reason) {
    const json::value body{{"reason", std::move(reason)}};
    return read_reason(JsonReader(body));
  };
  std::string long_reason;
  for (int i = 0; i < 500; ++i) long_reason += "é";
  EXPECT_EQ(reason_of("x"), "x");
  EXPECT_EQ(reason_of(json::value(long_reason)), long_reason);
  for (const json::value& bad :
       {json::value(""), json::value(" \t\n"), json::value(long_reason + "x"), json::value(5), json::value(nullptr)}) {
    SCOPED_TRACE(json::serialize(bad).substr(0, 40));
    EXPECT_EQ(context(error_from([&] { reason_of(bad); }), "field"), "reason");
  }
}

TEST(request_reader, a_text_is_bounded_by_its_characters) {
  const auto text_of = [](json::value text) {
    const json::value body{{"note", std::move(text)}};
    return read_text(JsonReader(body).field("note"), 3);
  };
  EXPECT_EQ(text_of(""), "");
  EXPECT_EQ(text_of("€€€"), "€€€");
  for (const json::value& bad : {json::value("abcd"), json::value(std::string("a\0", 2)), json::value(7)}) {
    SCOPED_TRACE(json::serialize(bad));
    EXPECT_EQ(context(error_from([&] { text_of(bad); }), "field"), "note");
  }
}

TEST(request_reader, a_limit_has_its_own_bounds) {
  const auto limit_of = [](std::string_view target) {
    Request request;
    EXPECT_TRUE(request.set_target(target)) << target;
    return read_limit(request, 10, 20);
  };
  EXPECT_EQ(limit_of("/x"), 10U);
  EXPECT_EQ(limit_of("/x?limit=20"), 20U);
  for (const auto* bad : {"/x?limit=0", "/x?limit=21", "/x?limit=-1", "/x?limit=", "/x?limit=5&limit=5"}) {
    EXPECT_EQ(context(error_from([&] { limit_of(bad); }), "parameter"), "limit") << bad;
  }
}

}  // namespace
}  // namespace fencepost::http
