#include "http/problem.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "http/batch_answer.hpp"
#include "http/error_codes.hpp"

namespace fencepost::http {
namespace {

std::optional<std::string> header(const Response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

// Clients retry a 503 by themselves if it says when.
TEST(problem, every_503_says_when_to_try_again) {
  for (const auto& code : error_codes()) {
    if (code.status != 503) continue;
    SCOPED_TRACE(code.code);
    const auto response = make_problem(unavailable(std::string(code.code), "m"), "r");
    EXPECT_EQ(header(response, "Retry-After"), "1");
    EXPECT_EQ(item_error(unavailable(std::string(code.code), "m")).at("retryAfter").as_int64(), 1);
  }
}

TEST(problem, has_the_error_and_its_context) {
  const auto error = conflict("request_conflict", "The same id with another payload.").with("txId", "7");
  const auto response = make_problem(error, "req-1");
  EXPECT_EQ(response.status, 409U);
  EXPECT_EQ(header(response, "Content-Type"), "application/problem+json");
  const auto expected = boost::json::parse(R"({"type": "about:blank", "title": "Conflict", "status": 409,
      "detail": "The same id with another payload.", "code": "request_conflict", "httpRequestId": "req-1", "txId": "7"})");
  EXPECT_EQ(boost::json::parse(response.body), expected);
  EXPECT_EQ(response.error, error);
}

TEST(problem, every_kind_has_its_status) {
  struct Case {
    ErrorKind kind;
    unsigned status;
  };
  for (const auto& [kind, status] : {Case{ErrorKind::kInvalid, 400},
                                     {ErrorKind::kUnauthenticated, 401},
                                     {ErrorKind::kForbidden, 403},
                                     {ErrorKind::kNotFound, 404},
                                     {ErrorKind::kConflict, 409},
                                     {ErrorKind::kTooLarge, 413},
                                     {ErrorKind::kUnprocessable, 422},
                                     {ErrorKind::kRateLimited, 429},
                                     {ErrorKind::kInternal, 500},
                                     {ErrorKind::kUnavailable, 503},
                                     {ErrorKind::kTimeout, 504}}) {
    const auto response = make_problem(Error{kind, "c", "m", {}, {}}, "r");
    EXPECT_EQ(response.status, status);
    EXPECT_NE(reason_phrase(status), "Unknown");
  }
}

TEST(problem, says_when_to_retry) {
  const auto response = make_problem(unavailable("busy", "m").after(std::chrono::seconds(7)), "r");
  EXPECT_EQ(header(response, "Retry-After"), "7");
  EXPECT_EQ(header(make_problem(conflict("wrong_state", "m"), "r"), "Retry-After"), std::nullopt);
}

TEST(problem, asks_for_a_key) {
  const auto response = make_problem(Error{ErrorKind::kUnauthenticated, "no_key", "m", {}, {}}, "r");
  EXPECT_EQ(header(response, "WWW-Authenticate"), "Bearer");
}

TEST(problem, internal_errors_hide_their_details) {
  const auto response = make_problem(internal("oops", "password=hunter2").with("dsn", "postgres://u:p@h"), "r");
  EXPECT_EQ(response.body.find("hunter2"), std::string::npos);
  EXPECT_EQ(response.body.find("postgres"), std::string::npos);
  EXPECT_EQ(boost::json::parse(response.body).at("code"), "internal");
  EXPECT_EQ(response.error->code, "oops");
  EXPECT_EQ(response.error->message, "password=hunter2");
}

TEST(problem, context_never_replaces_a_member) {
  const auto document = boost::json::parse(make_problem(invalid("c", "m").with("status", "MINED"), "r").body);
  EXPECT_EQ(document.at("status"), 400);
  EXPECT_EQ(document.as_object().size(), 6U);
}

ClientResponse received(const Response& response) {
  return {.status = response.status, .headers = response.headers, .body = response.body};
}

TEST(problem, is_read_back_as_the_error_it_was_made_from) {
  for (const auto& error : {conflict("request_conflict", "Another payload.").with("txId", "7").with("nonce", "3"),
                            unavailable("busy", "Later.").after(std::chrono::seconds(7)),
                            Error{ErrorKind::kTooLarge, "too_large", "Less.", {}, {}, {}}}) {
    EXPECT_EQ(read_problem(received(make_problem(error, "req-1"))), error);
  }
  const auto hidden = read_problem(received(make_problem(internal("oops", "password=hunter2"), "r")));
  ASSERT_TRUE(hidden.has_value());
  EXPECT_EQ(hidden->kind, ErrorKind::kInternal);
  EXPECT_EQ(hidden->code, "internal");
}

TEST(problem, of_any_status_has_a_kind) {
  const auto kind = [](unsigned status) {
    return read_problem({.status = status, .headers = {}, .body = R"({"code": "c"})"})->kind;
  };
  EXPECT_EQ(kind(405), ErrorKind::kInvalid);
  EXPECT_EQ(kind(501), ErrorKind::kInternal);
  EXPECT_EQ(kind(502), ErrorKind::kUnavailable);
}

TEST(problem, of_another_server_is_not_read) {
  EXPECT_EQ(read_problem({.status = 200, .headers = {}, .body = R"({"code": "c"})"}), std::nullopt);
  for (const auto* body : {"", "<html>", "[]", "{}", R"({"detail": "no code"})", R"({"code": 1} {})"}) {
    EXPECT_EQ(read_problem({.status = 502, .headers = {}, .body = body}), std::nullopt) << body;
  }
}

TEST(problem, may_have_members_of_any_kind) {
  const auto error = read_problem({.status = 409,
                                   .headers = {{"retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"}},
                                   .body = R"({"code": "c", "nonce": 7, "leader": null, "tags": ["a"]})"});
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->message, "c");
  EXPECT_EQ(error->context, (Error::Context{{"nonce", "7"}, {"tags", R"(["a"])"}}));
  EXPECT_EQ(error->retry_after, std::nullopt);
}

}  // namespace
}  // namespace fencepost::http
