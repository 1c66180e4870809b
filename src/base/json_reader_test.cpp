#include "base/json_reader.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/json.hpp"

namespace fencepost {
namespace {

enum class Mode { kSync, kPool };
constexpr std::array<std::pair<std::string_view, Mode>, 2> kModes{{{"sync", Mode::kSync}, {"pool", Mode::kPool}}};

boost::json::value document(std::string_view text) {
  return parse_json(text, 1 << 20).value();
}

Error error_from(std::string_view text, const std::function<void(const JsonReader&)>& read) {
  const auto body = document(text);
  try {
    read(JsonReader(body));
  } catch (const Exception& e) {
    return e.error();
  }
  return internal("", "nothing was thrown");
}

TEST(json_reader, takes_values_of_every_type) {
  const auto body = document(R"({
      "payload": {"value": "0xff", "gas": 21000, "big": 18446744073709551615, "delta": -3},
      "label": "größe", "dry": false, "mode": "pool", "user": "9223372036854775807",
      "id": "01890a5d-ac96-774b-bcce-b302099a8057", "items": [{"n": 1}, {"n": 2}], "gone": null})");
  const JsonReader in(body);
  EXPECT_EQ(in.field("payload").field("value").uint256_text(), "255");
  EXPECT_EQ(in.field("payload").field("gas").uint64(), 21000U);
  EXPECT_EQ(in.field("payload").field("gas").int64(21000, 21000), 21000);
  EXPECT_EQ(in.field("payload").field("big").uint64(), 18446744073709551615ULL);
  EXPECT_EQ(in.field("payload").field("delta").int64(), -3);
  EXPECT_EQ(in.field("label").string(7), "größe");
  EXPECT_EQ(in.field("label").optional_string(), "größe");
  EXPECT_FALSE(in.field("dry").boolean());
  EXPECT_EQ(in.field("mode").one_of(kModes), Mode::kPool);
  EXPECT_EQ(in.field("user").int64_text(), 9223372036854775807);
  EXPECT_EQ(in.field("id").uuid().to_string(), "01890a5d-ac96-774b-bcce-b302099a8057");
  const auto items = in.field("items").array(2);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[1].field("n").int64(), 2);
  EXPECT_EQ(items[1].field("n").path(), "items[1].n");
}

TEST(json_reader, absent_and_null_are_the_same) {
  const auto body = document(R"({"gone": null, "empty": ""})");
  const JsonReader in(body);
  EXPECT_FALSE(in.field("gone").present());
  EXPECT_FALSE(in.field("never").present());
  EXPECT_FALSE(in.field("never").field("deeper").present());
  EXPECT_EQ(in.field("gone").optional_string(), std::nullopt);
  EXPECT_EQ(in.field("never").optional_string(), std::nullopt);
  EXPECT_EQ(in.field("empty").optional_string(), "");
}

TEST(json_reader, names_the_field_and_what_it_got) {
  using R = const JsonReader&;
  struct Case {
    std::string_view text;
    std::function<void(R)> read;
    std::string_view message;
  };
  const Case cases[] = {
      {R"({"payload":{"value":5}})", [](R in) { in.field("payload").field("value").uint256_text(); },
       R"(payload.value: expected decimal or 0x string, got number 5)"},
      {R"({"payload":{"value":"010"}})", [](R in) { in.field("payload").field("value").uint256_text(); },
       R"(payload.value: expected decimal or 0x string, got "010": leading zero)"},
      {R"({"payload":{}})", [](R in) { in.field("payload").field("value").uint256_text(); },
       "payload.value: is required"},
      {R"({})", [](R in) { in.field("payload").field("value").uint256_text(); }, "payload.value: is required"},
      {R"({"payload":null})", [](R in) { in.field("payload").string(); }, "payload: expected a string, got null"},
      {R"({"payload":[1]})", [](R in) { in.field("payload").field("value"); },
       "payload: expected an object, got an array"},
      {R"([])", [](R in) { in.field("a"); }, "body: expected an object, got an array"},
      {R"({"s":"abcd"})", [](R in) { in.field("s").string(3); }, "s: expected at most 3 bytes, got 4"},
      {R"({"s":"a\u0000b"})", [](R in) { in.field("s").string(); }, "s: must not contain a NUL character"},
      {R"({"s":1})", [](R in) { in.field("s").optional_string(); }, "s: expected a string, got number 1"},
      {R"({"b":"true"})", [](R in) { in.field("b").boolean(); }, R"(b: expected true or false, got "true")"},
      {R"({"n":1.0})", [](R in) { in.field("n").int64(); }, "n: expected an integer, got number 1E0"},
      {R"({"n":"1"})", [](R in) { in.field("n").uint64(); }, R"(n: expected an integer, got "1")"},
      {R"({"n":11})", [](R in) { in.field("n").int64(1, 10); }, "n: expected an integer from 1 to 10, got number 11"},
      {R"({"n":-1})", [](R in) { in.field("n").uint64(0, 9); }, "n: expected an integer from 0 to 9, got number -1"},
      {R"({"n":9223372036854775808})", [](R in) { in.field("n").int64(0, 5); },
       "n: expected an integer from 0 to 5, got number 9223372036854775808"},
      {R"({"i":"9223372036854775808"})", [](R in) { in.field("i").int64_text(); },
       R"(i: expected a string of decimal digits without leading zeros, up to 9223372036854775807, got "9223372036854775808")"},
      {R"({"i":"007"})", [](R in) { in.field("i").int64_text(); },
       R"(i: expected a string of decimal digits without leading zeros, up to 9223372036854775807, got "007")"},
      {R"({"i":"-1"})", [](R in) { in.field("i").int64_text(); },
       R"(i: expected a string of decimal digits without leading zeros, up to 9223372036854775807, got "-1")"},
      {R"({"i":""})", [](R in) { in.field("i").int64_text(); },
       R"(i: expected a string of decimal digits without leading zeros, up to 9223372036854775807, got "")"},
      {R"({"i":7})", [](R in) { in.field("i").int64_text(); },
       R"(i: expected a string of decimal digits without leading zeros, up to 9223372036854775807, got number 7)"},
      {R"({"u":"x"})", [](R in) { in.field("u").uuid(); },
       R"(u: expected a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057, got "x")"},
      {R"({"a":[1,2,3]})", [](R in) { in.field("a").array(2); }, "a: expected at most 2 elements, got 3"},
      {R"({"a":{}})", [](R in) { in.field("a").array(2); }, "a: expected an array, got an object"},
      {R"({"a":[{"b":[0,"x"]}]})", [](R in) { in.field("a").array(9)[0].field("b").array(9)[1].int64(); },
       R"(a[0].b[1]: expected an integer, got "x")"},
      {R"({"mode":"fast"})", [](R in) { in.field("mode").one_of(kModes); },
       R"(mode: expected sync or pool, got "fast")"},
      {R"({"mode":1})", [](R in) { in.field("mode").one_of(kModes); }, R"(mode: expected sync or pool, got number 1)"},
  };
  for (const auto& c : cases) {
    const auto error = error_from(c.text, c.read);
    EXPECT_EQ(error.message, c.message) << c.text;
    EXPECT_EQ(error.kind, ErrorKind::kInvalid) << c.text;
    EXPECT_EQ(error.code, "bad_request") << c.text;
    ASSERT_EQ(error.context.size(), 1U) << c.text;
    EXPECT_EQ(error.context[0].first, "field");
    EXPECT_EQ(error.context[0].second, c.message.substr(0, c.message.find(": "))) << c.text;
  }
}

TEST(json_reader, names_a_member_that_is_not_known_and_what_was_probably_meant) {
  constexpr JsonReader::Hint kHints[] = {{"gasLimit", R"(did you mean "gas"?)"}};
  struct Case {
    std::string text;
    std::string message;
    std::string field;
  };
  const Case cases[] = {
      {R"({"payload":{"valeu":1}})", R"(payload: unknown field "valeu"; did you mean "value"?)", "payload.valeu"},
      {R"({"payload":{"gasLimit":1}})", R"(payload: unknown field "gasLimit"; did you mean "gas"?)",
       "payload.gasLimit"},
      {R"({"payload":{"zzz":1}})", R"(payload: unknown field "zzz")", "payload.zzz"},
      {R"({"payload":{"a\nb":1}})", R"(payload: unknown field "a\nb")", "payload.a b"},
  };
  for (const auto& c : cases) {
    const auto error =
        error_from(c.text, [&](const auto& in) { in.field("payload").reject_unknown({"value", "gas"}, kHints); });
    EXPECT_EQ(error.code, "bad_request") << c.text;
    EXPECT_EQ(error.message, c.message) << c.text;
    EXPECT_EQ(error.context, (Error::Context{{"field", c.field}})) << c.text;
  }
  const auto at_top = error_from(R"({"zzz":1})", [](const auto& in) { in.reject_unknown({"value"}); });
  EXPECT_EQ(at_top.message, R"(body: unknown field "zzz")");
  EXPECT_EQ(at_top.context, (Error::Context{{"field", "zzz"}}));
}

TEST(json_reader, shows_at_most_64_bytes_of_a_value_and_escapes_it) {
  const auto error =
      error_from("{\"n\":\"" + std::string(5000, 'x') + "\"}", [](const auto& in) { in.field("n").int64(); });
  EXPECT_EQ(error.message, "n: expected an integer, got \"" + std::string(64, 'x') + "…\"");
  const auto forged = error_from(R"({"n":"a\n\u001b[2Jforged"})", [](const auto& in) { in.field("n").int64(); });
  EXPECT_EQ(forged.message, R"(n: expected an integer, got "a\n\x1b[2Jforged")");
}

TEST(json_reader, lets_the_caller_reject_by_its_own_rules) {
  const auto error = error_from(
      R"({"to":"0x12"})", [](const JsonReader& in) { in.field("to").reject("bad_address", "expected an address"); });
  EXPECT_EQ(error, invalid("bad_address", "to: expected an address").with("field", "to"));
}

TEST(json_reader, accepts_the_known_fields) {
  const auto body = document(R"({"value":1,"gas":2})");
  EXPECT_NO_THROW(JsonReader(body).reject_unknown({"value", "gas", "label"}));
}

TEST(json_reader, null_is_told_apart_from_absence) {
  const auto document = boost::json::parse(R"({"a": null, "b": 1})");
  const JsonReader in(document);
  EXPECT_TRUE(in.field("a").is_null());
  EXPECT_FALSE(in.field("b").is_null());
  EXPECT_FALSE(in.field("c").is_null());
}

}  // namespace
}  // namespace fencepost
