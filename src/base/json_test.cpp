#include "base/json.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace fencepost {
namespace {

constexpr std::size_t kLimit = 1 << 20;

TEST(json, reads_documents) {
  for (const std::string_view text : {
           R"({"a":1,"b":[true,false,null],"c":{"a":"x"},"d":1.5E0})",
           R"([])",
           R"({})",
           R"("text")",
           R"(18446744073709551615)",
           R"(-9223372036854775808)",
           R"([{"a":1},{"a":2}])",
           R"({"a":{"a":{"a":1}}})",
       }) {
    const auto value = parse_json(text, kLimit);
    ASSERT_TRUE(value.has_value()) << text << value.error().to_string();
    EXPECT_EQ(boost::json::serialize(*value), text);
  }
  EXPECT_TRUE(parse_json(" \n {} \t\r\n", kLimit).has_value());
}

TEST(json, says_what_is_wrong_and_where) {
  struct Case {
    std::string text;
    std::string message;
  };
  const Case cases[] = {
      {"", "not valid JSON at line 1, column 1: incomplete JSON"},
      {"{\"a\":", "not valid JSON at line 1, column 6: incomplete JSON"},
      {"{\n  \"a\": tru\n}", "not valid JSON at line 2, column 8: syntax error"},
      {"{'a':1}", "not valid JSON at line 1, column 2: syntax error"},
      {"{} x", "not valid JSON at line 1, column 4: more text after the document"},
      {"{}{}", "not valid JSON at line 1, column 3: more text after the document"},
      {"[1,]", "not valid JSON at line 1, column 4: syntax error"},
      {"// hi\n1", "not valid JSON at line 1, column 1: syntax error"},
      {"NaN", "not valid JSON at line 1, column 1: syntax error"},
      {"01", "not valid JSON at line 1, column 2: more text after the document"},
      {"\"\x01\"", "not valid JSON at line 1, column 2: syntax error"},
      {"\"\xff\"", "not valid JSON at line 1, column 2: syntax error"},
  };
  for (const auto& c : cases) {
    const auto value = parse_json(c.text, kLimit);
    ASSERT_FALSE(value.has_value()) << c.text;
    EXPECT_EQ(value.error().kind, ErrorKind::kInvalid);
    EXPECT_EQ(value.error().code, "bad_json");
    EXPECT_EQ(value.error().message, c.message) << c.text;
  }
}

TEST(json, refuses_a_repeated_key_at_any_depth) {
  EXPECT_EQ(parse_json(R"({"a":1,"b":2,"a":3})", kLimit).error().message,
            R"(not valid JSON at line 1, column 19: the object that ends here has the key "a" twice)");
  EXPECT_EQ(parse_json("[{\"x\":\n{\"k\":[{}],\"l\":{\"k\":1},\"k\":2}}]", kLimit).error().message,
            R"(not valid JSON at line 2, column 28: the object that ends here has the key "k" twice)");
  // The same key spelled with an escape is the same key.
  EXPECT_FALSE(parse_json(R"({"ab":1,"\u0061b":2})", kLimit).has_value());
  const std::string long_key(5000, 'k');
  EXPECT_FALSE(parse_json("{\"" + long_key + "\":1,\"" + long_key + "\":2}", kLimit).has_value());
}

TEST(json, reads_an_object_with_many_keys) {
  std::string text = "{";
  for (int i = 0; i < 50'000; ++i) text += fmt::format("\"key{}\":0,", i);
  text.back() = '}';
  EXPECT_EQ(parse_json(text, kLimit)->as_object().size(), 50'000U);
}

TEST(json, refuses_numbers_that_would_lose_precision) {
  for (const std::string_view text : {"18446744073709551616", "-9223372036854775809",
                                      "115792089237316195423570985008687907853269984665640564039457"}) {
    const auto value = parse_json(text, kLimit);
    ASSERT_FALSE(value.has_value()) << text;
    EXPECT_TRUE(value.error().message.ends_with("integer over 64 bits; write it as a string")) << value.error().message;
  }
  EXPECT_TRUE(parse_json("1e999", kLimit).error().message.ends_with("number out of range"));
  EXPECT_EQ(parse_json("1e3", kLimit)->as_double(), 1000.0);
}

TEST(json, limits_depth_and_size) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json(nested(kJsonMaxDepth), kLimit).has_value());
  EXPECT_EQ(parse_json(nested(kJsonMaxDepth + 1), kLimit).error().code, "bad_json");
  EXPECT_TRUE(parse_json("[1]", 3).has_value());
  EXPECT_EQ(parse_json("[1] ", 3).error().kind, ErrorKind::kTooLarge);
  EXPECT_EQ(parse_json("[1] ", 3).error().code, "json_too_large");
}

TEST(json, describes_values_briefly) {
  EXPECT_EQ(describe_json(nullptr), "null");
  EXPECT_EQ(describe_json(true), "true");
  EXPECT_EQ(describe_json(-5), "number -5");
  EXPECT_EQ(describe_json("a\nb"), "\"a\\nb\"");
  EXPECT_EQ(describe_json(boost::json::array()), "an array");
  EXPECT_EQ(describe_json(boost::json::object()), "an object");
}

}  // namespace
}  // namespace fencepost
