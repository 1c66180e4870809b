#include "http/idempotency_key.hpp"

#include <gtest/gtest.h>

#include "http/request_test_support.hpp"

namespace fencepost::http {
namespace {

using testing::context;
using testing::error_from;

Request with_key(std::string_view key) {
  Request request;
  request.add_header("idempotency-KEY", key);
  return request;
}

TEST(idempotency_key, is_used_verbatim) {
  EXPECT_EQ(read_idempotency_key(with_key("order-17")), "order-17");
  EXPECT_EQ(read_idempotency_key(with_key("\"order-17\"")), "\"order-17\"");
  EXPECT_EQ(read_idempotency_key(with_key("Zoë")), "Zoë");
  EXPECT_EQ(read_idempotency_key(Request()), std::nullopt);
}

TEST(idempotency_key, has_the_rules_of_a_request_id) {
  for (const auto& bad : {std::string(), std::string(129, 'x'), std::string("a\tb"), std::string("a\xff")}) {
    const auto error = error_from([&] { read_idempotency_key(with_key(bad)); });
    EXPECT_EQ(error.code, "bad_idempotency_key") << bad;
    EXPECT_EQ(context(error, "header"), "Idempotency-Key");
  }
  auto twice = with_key("a");
  twice.add_header("Idempotency-Key", "a");
  EXPECT_EQ(error_from([&] { read_idempotency_key(twice); }).code, "bad_idempotency_key");
}

TEST(idempotency_key, may_be_in_the_header_or_in_the_body_or_in_both) {
  EXPECT_EQ(one_key(std::nullopt, std::nullopt, "requestId"), std::nullopt);
  EXPECT_EQ(one_key("a", std::nullopt, "requestId"), "a");
  EXPECT_EQ(one_key(std::nullopt, "a", "requestId"), "a");
  EXPECT_EQ(one_key("a", "a", "requestId"), "a");
  const auto error = error_from([&] { one_key("a", "b", "requestId"); });
  EXPECT_EQ(error.code, "idempotency_key_mismatch");
  EXPECT_EQ(context(error, "field"), "requestId");
}

TEST(idempotency_key, of_a_batch_is_refused) {
  refuse_idempotency_key(Request());
  EXPECT_EQ(error_from([&] { refuse_idempotency_key(with_key("a")); }).code, "idempotency_key_in_batch");
}

}  // namespace
}  // namespace fencepost::http
