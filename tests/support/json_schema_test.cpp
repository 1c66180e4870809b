#include "tests/support/json_schema.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/error.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

struct Case {
  const char* schema;
  const char* good;
  const char* bad;
};

TEST(json_schema, every_keyword_is_checked) {
  const auto document = json::parse(R"({"defs": {"Name": {"type": "string", "maxLength": 3}}})");
  const JsonSchema schemas(document);
  const Case cases[] = {
      {R"({"type": "integer"})", "1", "1.5"},
      {R"({"type": "number"})", "1.5", "\"1\""},
      {R"({"type": ["string", "null"]})", "null", "true"},
      {R"({"enum": ["a", null]})", "null", "\"b\""},
      {R"({"const": "a"})", "\"a\"", "\"b\""},
      {R"({"minimum": 0, "maximum": 9223372036854775806})", "9223372036854775806", "9223372036854775807"},
      {R"({"minimum": 0})", "0", "-1"},
      {R"({"minLength": 1, "maxLength": 2})", "\"éé\"", "\"\""},
      {R"({"maxLength": 2})", "\"éé\"", "\"abc\""},
      {R"({"x-maxBytes": 3})", "\"é\"", "\"éé\""},
      {R"({"pattern": "^[^\\u0000-\\u001f\\u007f]*$"})", "\"aé \"", "\"a\\tb\""},
      {R"({"format": "uuid"})", "\"0193309a-0000-7000-8000-000000000001\"", "\"0193309a\""},
      {R"({"format": "date-time"})", "\"2026-01-02T03:04:05.678Z\"", "\"2026-01-02 03:04:05\""},
      {R"({"format": "uint256"})", "\"0xff\"", "\"0x\""},
      {R"({"format": "int64"})", "\"9223372036854775807\"", "\"9223372036854775808\""},
      {R"({"items": {"type": "string"}, "minItems": 1, "maxItems": 2})", R"(["a"])", "[1]"},
      {R"({"minItems": 1})", "[1]", "[]"},
      {R"({"maxItems": 1})", "[1]", "[1, 2]"},
      {R"({"uniqueItems": true})", R"([1, 2, "1"])", "[1, 2, 1]"},
      {R"({"required": ["a"]})", R"({"a": 1})", "{}"},
      {R"({"minProperties": 1})", R"({"a": 1})", "{}"},
      {R"({"properties": {"a": {"type": "string"}}})", R"({"a": "x", "b": 1})", R"({"a": 1})"},
      {R"({"additionalProperties": false, "properties": {"a": {}}})", R"({"a": 1})", R"({"b": 1})"},
      {R"({"additionalProperties": {"type": "string"}})", R"({"a": "x"})", R"({"a": 1})"},
      {R"({"propertyNames": {"enum": ["a"]}})", R"({"a": 1})", R"({"b": 1})"},
      {R"({"anyOf": [{"type": "string"}, {"type": "null"}]})", "null", "1"},
      {R"({"allOf": [{"type": "object"}, {"required": ["a"]}]})", R"({"a": 1})", "{}"},
      {R"({"$ref": "#/defs/Name"})", "\"abc\"", "\"abcd\""},
  };
  for (const auto& [schema, good, bad] : cases) {
    SCOPED_TRACE(schema);
    EXPECT_TRUE(schemas.accepts(json::parse(schema), json::parse(good)));
    EXPECT_FALSE(schemas.accepts(json::parse(schema), json::parse(bad)));
  }
}

TEST(json_schema, says_where_the_value_is_wrong) {
  const json::value document;
  const auto schema = json::parse(R"({"properties": {"items": {"items": {"type": "string"}}}})");
  EXPECT_EQ(JsonSchema(document).check(schema, json::parse(R"({"items": ["a", 1]})")),
            std::vector<std::string>{"/items/1: expected \"string\", got 1"});
}

TEST(json_schema, what_it_does_not_know_is_an_error) {
  const json::value document;
  const JsonSchema schemas(document);
  for (const auto* schema :
       {R"({"oneOf": []})", R"({"type": "text"})", R"({"format": "ipv4"})", R"({"$ref": "#/a"})"}) {
    EXPECT_THROW(schemas.check(json::parse(schema), json::value("x")), Exception) << schema;
  }
}

TEST(json_schema, a_review_finds_what_a_schema_leaves_open) {
  const json::value document;
  const auto wrong = JsonSchema(document).review(json::parse(R"({"type": "object", "additionalProperties": false,
      "properties": {"open": {"type": ["object", "null"]}, "odd": {"dependentRequired": {}}, "torn": {"pattern": "["},
                     "list": {"type": "array", "items": {"type": "object"}}, "fine": {"type": "string"}}})"));
  EXPECT_EQ(wrong.size(), 4U);
}

}  // namespace
}  // namespace fencepost::test
