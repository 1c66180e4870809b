#include "http/batch_answer.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace fencepost::http {
namespace {

namespace json = boost::json;

TEST(batch_answer, a_refused_item_says_why_and_where) {
  const auto error = item_error(invalid("bad_address", "signer: expected an address").with("field", "signer"));
  EXPECT_EQ(error,
            (json::object{{"code", "bad_address"}, {"detail", "signer: expected an address"}, {"field", "signer"}}));
}

TEST(batch_answer, a_refused_item_says_when_to_come_back) {
  const auto error = item_error(unavailable("busy", "too much").after(std::chrono::seconds(2)));
  EXPECT_EQ(error.at("retryAfter"), 2);
}

TEST(batch_answer, a_bug_is_not_told_to_clients) {
  const auto text = json::serialize(item_error(internal("bug", "row 5 is odd").with("host", "db-1")));
  EXPECT_EQ(text.find("odd"), std::string::npos) << text;
  EXPECT_EQ(text.find("db-1"), std::string::npos) << text;
}

}  // namespace
}  // namespace fencepost::http
