#include "cli/api_client.hpp"

#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

Result<boost::json::value> answer(unsigned status, std::string body) {
  return read_answer({.status = status, .headers = {{"X-Request-Id", "r-1"}}, .body = std::move(body)});
}

TEST(read_answer, gives_the_document_of_a_success) {
  EXPECT_EQ(answer(200, R"({"a": 1})")->at("a").as_int64(), 1);
  EXPECT_EQ(answer(202, "[]")->as_array().size(), 0U);
  EXPECT_TRUE(answer(204, "")->is_null());
}

TEST(read_answer, turns_a_problem_into_its_error_fit_for_a_terminal) {
  const auto refused = answer(409, R"({"type": "about:blank", "title": "Conflict", "status": 409, "txId": "t",
                                       "detail": "another\u001b payload", "code": "request_conflict", "nonce": 7,
                                       "httpRequestId": "r-1", "reason": "\u0007"})");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(refused.error().code, "request_conflict");
  EXPECT_EQ(refused.error().message, "another  payload");
  EXPECT_EQ(
      refused.error().context,
      (Error::Context{
          {"code", "request_conflict"}, {"txId", "t"}, {"nonce", "7"}, {"reason", " "}, {"X-Request-Id", "r-1"}}));
}

TEST(read_answer, an_answer_not_from_fencepost_is_an_error) {
  for (const auto& [status, body] : {std::pair{200U, "<html>"}, std::pair{502U, "<html>"}, std::pair{404U, "{}"},
                                     std::pair{500U, ""}, std::pair{400U, "[]"}}) {
    const auto strange = answer(status, body);
    ASSERT_FALSE(strange.has_value()) << body;
    EXPECT_EQ(strange.error().code, "bad_answer");
  }
}

TEST(api_client, an_unreachable_node_is_an_error_with_its_url) {
  ApiClient client({"http://127.0.0.1:1", Secret("fp_secret")});
  const auto answer = client.get("/api/v1/tx");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, "connect_failed");
  EXPECT_EQ(answer.error().to_string().find("fp_secret"), std::string::npos);
  EXPECT_NE(answer.error().to_string().find("http://127.0.0.1:1"), std::string::npos);
}

TEST(api_client, the_error_for_an_unreachable_node_names_the_source_of_the_url) {
  ApiClient client({"http://127.0.0.1:1", Secret("fp_secret"), "var/up.json", "var/up.json"});
  const auto answer = client.get("/api/v1/tx");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().context.back(),
            (std::pair<std::string, std::string>{"url from", "var/up.json: check that this 'up' is still running"}));
}

}  // namespace
}  // namespace fencepost::cli
