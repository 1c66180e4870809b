#include "base/error.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace fencepost {
namespace {

TEST(error, prints_message_code_and_context_on_one_line) {
  EXPECT_EQ(not_found("no_such_tx", "there is no such transaction").to_string(),
            "there is no such transaction [no_such_tx]");
  EXPECT_EQ(invalid("bad_nonce", "wrong").with("signer", "0xab").with("nonce", "7").to_string(),
            "wrong [bad_nonce] signer=0xab nonce=7");
}

TEST(error, each_maker_sets_its_kind) {
  EXPECT_EQ(invalid("c", "m").kind, ErrorKind::kInvalid);
  EXPECT_EQ(not_found("c", "m").kind, ErrorKind::kNotFound);
  EXPECT_EQ(conflict("c", "m").kind, ErrorKind::kConflict);
  EXPECT_EQ(unavailable("c", "m").kind, ErrorKind::kUnavailable);
  EXPECT_EQ(internal("c", "m").kind, ErrorKind::kInternal);
}

TEST(error, context_can_be_added_to_temporaries_and_to_variables) {
  auto error = conflict("request_conflict", "m").with("a", "1");
  error.with("b", "2").with("c", "3");
  EXPECT_EQ(error.context, (Error::Context{{"a", "1"}, {"b", "2"}, {"c", "3"}}));
  EXPECT_EQ(unavailable("busy", "m").after(std::chrono::seconds{3}).retry_after, std::chrono::seconds{3});
}

TEST(error, travels_in_a_result_and_in_an_exception) {
  const auto error = conflict("request_conflict", "taken").with("id", "1");
  const Result<int> result = fail(error);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error(), error);
  const Exception exception(error);
  EXPECT_EQ(exception.error(), error);
  EXPECT_STREQ(exception.what(), "taken [request_conflict] id=1");
}

TEST(error, is_made_from_an_exception_of_any_type) {
  const auto error = not_found("gone", "gone");
  EXPECT_EQ(error_of(std::make_exception_ptr(Exception(error))), error);
  EXPECT_EQ(error_of(std::make_exception_ptr(std::runtime_error("boom"))), internal("internal", "boom"));
}

}  // namespace
}  // namespace fencepost
