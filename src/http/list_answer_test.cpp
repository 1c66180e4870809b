#include "http/list_answer.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace fencepost::http {
namespace {

boost::json::value page(const std::vector<int>& rows, std::size_t limit) {
  const auto answer = page_answer(
      rows, limit, [](int row) { return boost::json::value(row); }, [](int row) { return std::to_string(row); });
  EXPECT_EQ(answer.status, 200U);
  return boost::json::parse(answer.body);
}

TEST(list_answer, a_whole_list_has_no_next_page) {
  EXPECT_EQ(boost::json::parse(list_answer({1, 2}).body),
            boost::json::parse(R"({"items": [1, 2], "nextCursor": null})"));
}

TEST(list_answer, one_extra_row_means_that_there_is_a_next_page) {
  EXPECT_EQ(page({4, 3, 2}, 2), boost::json::parse(R"({"items": [4, 3], "nextCursor": "3"})"));
  EXPECT_EQ(page({4, 3}, 2), boost::json::parse(R"({"items": [4, 3], "nextCursor": null})"));
  EXPECT_EQ(page({}, 2), boost::json::parse(R"({"items": [], "nextCursor": null})"));
}

}  // namespace
}  // namespace fencepost::http
