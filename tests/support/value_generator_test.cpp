#include "tests/support/value_generator.hpp"

#include <regex>

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace fencepost::test {
namespace {

namespace json = boost::json;

const auto kSchema = json::parse(R"({
  "type": "object", "required": ["id", "tags"], "additionalProperties": false,
  "properties": {
    "id": {"type": "string", "pattern": "^(0|[1-9][0-9]{0,18})$", "format": "int64"},
    "tags": {"type": "array", "maxItems": 3, "items": {"type": "string", "enum": ["a", "b"]}},
    "size": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9223372036854775807}, {"type": "null"}]},
    "more": {"type": "object", "additionalProperties": true}
  }})");

TEST(value_generator, makes_what_the_schema_accepts_and_what_it_does_not) {
  const json::value document;
  const JsonSchema schemas(document);
  ValueGenerator generator(schemas, 1);
  for (int i = 0; i < 300; ++i) {
    const auto good = generator.good(kSchema);
    EXPECT_TRUE(schemas.accepts(kSchema, good)) << json::serialize(good);
    const auto broken = generator.broken(kSchema, good);
    ASSERT_TRUE(broken.has_value());
    EXPECT_FALSE(schemas.accepts(kSchema, *broken)) << json::serialize(*broken);
  }
}

TEST(value_generator, is_the_same_for_the_same_seed) {
  const json::value document;
  const JsonSchema schemas(document);
  ValueGenerator one(schemas, 7);
  ValueGenerator two(schemas, 7);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(one.good(kSchema), two.good(kSchema));
}

TEST(value_generator, text_matches_its_pattern) {
  const json::value document;
  const JsonSchema schemas(document);
  ValueGenerator generator(schemas, 1);
  for (const std::string pattern :
       {"^0x[0-9a-fA-F]{40}$", "^(0|[1-9][0-9]{0,77}|0x(0|[1-9a-f][0-9a-f]{0,63}))$", "^[^\\u0000-\\u001f\\u007f]*$",
        "^0x([0-9a-f]{2})*$", "^(admin|[a-z_]+:(read|write))$", "[^\\t-\\r ]", "^[0-9]+\\.[0-9]+$"}) {
    for (int i = 0; i < 50; ++i) {
      const auto text = generator.matching(pattern);
      EXPECT_TRUE(std::regex_search(text, std::regex(pattern))) << pattern << " " << text;
    }
  }
}

TEST(value_generator, prefers_what_is_suggested) {
  const json::value document;
  const JsonSchema schemas(document);
  ValueGenerator generator(schemas, 1);
  generator.suggest("id", "42");
  int suggested = 0;
  for (int i = 0; i < 100; ++i) suggested += generator.good(kSchema).at("id") == "42" ? 1 : 0;
  EXPECT_GT(suggested, 50);
  EXPECT_LT(suggested, 100);
}

}  // namespace
}  // namespace fencepost::test
