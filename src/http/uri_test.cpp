#include "http/uri.hpp"

#include <gtest/gtest.h>

namespace fencepost::http {
namespace {

TEST(uri, percent_decode_accepts_well_formed_text) {
  struct Case {
    std::string_view in, out;
  };
  for (const auto& [in, out] : {Case{"", ""},
                                {"abc", "abc"},
                                {"a%20b", "a b"},
                                {"%2F%2f", "//"},
                                {"a+b", "a+b"},
                                {"%C3%A9", "\xC3\xA9"},
                                {"%F0%9F%98%80", "\xF0\x9F\x98\x80"}}) {
    SCOPED_TRACE(in);
    EXPECT_EQ(percent_decode(in), std::string(out));
  }
  EXPECT_EQ(percent_decode("a+b", PlusSign::kSpace), "a b");
}

TEST(uri, percent_decode_refuses_malformed_text) {
  for (const std::string_view in :
       {"%", "%2", "a%2", "%GG", "%0G", "%00", "%FF", "%C3", "%C0%80", "%ED%A0%80", "%F5%80%80%80", "%E2%28%A1"}) {
    SCOPED_TRACE(in);
    const auto out = percent_decode(in);
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, "bad_percent_encoding");
  }
}

TEST(uri, percent_encode_is_undone_by_decode) {
  std::string every;
  for (int c = 1; c < 128; ++c) every += static_cast<char>(c);
  every += "\xC3\xA9";
  EXPECT_EQ(percent_decode(percent_encode(every)), every);
  EXPECT_EQ(percent_encode("a b/c~"), "a%20b%2Fc~");
}

TEST(uri, parse_query_keeps_order_and_duplicates) {
  const QueryParameters expected{{"a", "1"}, {"b", ""}, {"a", "x y"}, {"c", "="}, {"", "v"}};
  EXPECT_EQ(parse_query("a=1&b&&a=x+y&c==&=v"), expected);
  EXPECT_EQ(parse_query(""), QueryParameters{});
  EXPECT_FALSE(parse_query("a=%zz"));
  EXPECT_FALSE(parse_query("%zz=a"));
}

TEST(uri, parse_query_is_bounded) {
  std::string many;
  for (int i = 0; i < 101; ++i) many += "a=1&";
  const auto parsed = parse_query(many);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, "too_many_parameters");
}

}  // namespace
}  // namespace fencepost::http
