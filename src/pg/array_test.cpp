#include "pg/array.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace fencepost::pg {
namespace {

using Elements = std::vector<std::optional<std::string>>;

TEST(pg_array, elements_are_read_as_postgres_writes_them) {
  const struct {
    std::string text;
    Elements elements;
  } cases[] = {
      {"{}", {}},
      {"{1}", {"1"}},
      {"{1,NULL,-3}", {"1", std::nullopt, "-3"}},
      {R"({"NULL",null})", {"NULL", "null"}},
      {R"({"a, \"b\" \\ {c}",d})", {R"(a, "b" \ {c})", "d"}},
      {R"({"",x})", {"", "x"}},
      {R"({"{\"available\": 5}",NULL})", {R"({"available": 5})", std::nullopt}},
  };
  for (const auto& each : cases) EXPECT_EQ(parse_array(each.text), each.elements) << each.text;
}

TEST(pg_array, what_is_no_array_of_one_dimension_throws) {
  for (const auto* text : {"", "{", "}", "1", "{1", "1}", "{1,}", "{,1}", R"({"a)", R"({"a})", R"({"a\"})", "{{1},{2}}",
                           R"({a"b"})", R"({"a"b})", "[2:2]={1}", "{1}}"}) {
    EXPECT_THROW(static_cast<void>(parse_array(text)), Exception) << text;
  }
}

}  // namespace
}  // namespace fencepost::pg
