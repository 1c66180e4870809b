#include "base/request_id.hpp"

#include <gtest/gtest.h>

namespace fencepost {
namespace {

TEST(request_id, is_returned_unchanged) {
  for (const std::string text : {"order-17", " padded ", "größe/№ 5", "\xc2\xa0", "0", "a\"b\\c"}) {
    EXPECT_EQ(parse_request_id(text), text);
  }
  EXPECT_EQ(parse_request_id(std::string(128, 'x')), std::string(128, 'x'));
}

TEST(request_id, refuses_what_cannot_be_stored_or_shown) {
  struct Case {
    std::string text;
    std::string message;
  };
  const Case cases[] = {
      {"", "must not be empty"},
      {std::string(129, 'x'), "expected at most 128 bytes, got 129"},
      {std::string("a\0b", 3), R"(must not contain control characters, got "a\x00b")"},
      {"a\nb", R"(must not contain control characters, got "a\nb")"},
      {"a\tb", R"(must not contain control characters, got "a\tb")"},
      {"\x7f", R"(must not contain control characters, got "\x7f")"},
      {"a\xc2\x85", R"(must not contain control characters, got "a\xc2\x85")"},
      {"a\xff", R"(expected UTF-8, got "a\xff")"},
      {"a\xc2", R"(expected UTF-8, got "a\xc2")"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(parse_request_id(c.text), (Result<std::string>(fail(invalid("bad_request_id", c.message))))) << c.message;
  }
}

}  // namespace
}  // namespace fencepost
