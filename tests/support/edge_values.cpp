#include "tests/support/edge_values.hpp"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace fencepost::test {
namespace {

namespace json = boost::json;

constexpr int kMatches = 3;  // texts that match a pattern

const json::value* rule_of(const json::object& rules, std::string_view keyword) {
  return rules.if_contains(keyword);
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

std::string uppercase(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// Of every type, and what lax parsers accept.
void add_common(std::vector<json::value>& out) {
  for (const json::value& one :
       {json::value(nullptr), json::value(true), json::value(0), json::value(1), json::value(-1), json::value(1.5),
        json::value(std::numeric_limits<std::int64_t>::max()), json::value(std::numeric_limits<std::uint64_t>::max()),
        json::value(json::array()), json::value(json::object())}) {
    out.push_back(one);
  }
  for (const auto* text : {"", " ", "x", "0", "1", "-1", "+1", "007", "1.0", "1e3", "0x", "0x0", "0x01", "true", "null",
                           "a\tb", "a\nb", "\u00e9"}) {
    out.emplace_back(text);
  }
  out.emplace_back(std::string("a\0b", 3));
}

void add_around(std::int64_t limit, std::vector<json::value>& out) {
  out.emplace_back(limit);
  if (limit > std::numeric_limits<std::int64_t>::min()) out.emplace_back(limit - 1);
  if (limit < std::numeric_limits<std::int64_t>::max()) {
    out.emplace_back(limit + 1);
  } else {
    out.emplace_back(static_cast<std::uint64_t>(limit) + 1);
  }
}

// What a lax parser takes for the same text.
void add_misspelt(const std::string& text, std::vector<json::value>& out) {
  for (const auto& one : {text, text + "x", text + " ", " " + text, text + "\n", uppercase(text),
                          text.substr(0, text.empty() ? 0 : text.size() - 1)}) {
    out.emplace_back(one);
  }
}

void add_format(std::string_view format, std::vector<json::value>& out) {
  if (format == "int64") {
    for (const auto* text :
         {"9223372036854775807", "9223372036854775808", "0x7fffffffffffffff", "0x8000000000000000"}) {
      out.emplace_back(text);
    }
  }
  if (format == "uint256") {
    out.emplace_back("115792089237316195423570985008687907853269984665640564039457584007913129639935");
    out.emplace_back("115792089237316195423570985008687907853269984665640564039457584007913129639936");
    out.emplace_back("0x" + repeated("f", 64));
    out.emplace_back("0x1" + repeated("0", 64));
    out.emplace_back("0X1");
  }
  if (format == "uuid") {
    for (const auto* text : {"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "0190A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B",
                             "0190a1b2c3d47e5f8a9b0c1d2e3f4a5b", "{0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b}"}) {
      out.emplace_back(text);
    }
  }
}

}  // namespace

json::value EdgeValues::full(const json::value& schema, std::string_view name) {
  auto good = generator_.good(schema, name);
  const auto& rules = schemas_.resolved(schema).as_object();
  const auto* properties = rule_of(rules, "properties");
  auto* object = good.if_object();
  if (properties == nullptr || object == nullptr) return good;
  for (const auto& [key, part] : properties->as_object()) {
    auto with = good;
    with.as_object()[key] = full(part, key);
    if (schemas_.accepts(schema, with)) good = std::move(with);
  }
  return good;
}

std::vector<json::value> EdgeValues::of(const json::value& schema) {
  std::vector<json::value> out;
  const auto& rules = schema.as_object();
  if (const auto* reference = rule_of(rules, "$ref")) {
    out = of(schemas_.resolve(reference->as_string()));
  } else {
    add_common(out);
  }
  for (const auto* keyword : {"anyOf", "allOf"}) {
    const auto* parts = rule_of(rules, keyword);
    if (parts == nullptr) continue;
    for (const auto& part : parts->as_array()) {
      auto more = of(part);
      std::ranges::move(more, std::back_inserter(out));
    }
  }
  add_limits(rules, out);
  add_texts(rules, out);
  add_lists(rules, out);
  return out;
}

void EdgeValues::add_limits(const json::object& rules, std::vector<json::value>& out) {
  for (const auto* keyword : {"minimum", "maximum"}) {
    if (const auto* limit = rule_of(rules, keyword)) add_around(limit->as_int64(), out);
  }
  for (const auto* keyword : {"minLength", "maxLength", "x-maxBytes"}) {
    const auto* limit = rule_of(rules, keyword);
    if (limit == nullptr) continue;
    const auto size = static_cast<std::size_t>(limit->as_int64());
    if (size > kMaxText) continue;
    for (const std::string_view letter : {"a", "\u00e9"}) {
      for (const auto n : {size / letter.size(), size / letter.size() + 1, size, size + 1}) {
        out.emplace_back(repeated(letter, n));
      }
    }
    constexpr std::size_t kAround = 8;  // {"k":""}
    if (size > kAround) {
      for (const auto n : {size - kAround, size - kAround + 1}) out.push_back(json::object{{"k", repeated("a", n)}});
    }
  }
}

void EdgeValues::add_texts(const json::object& rules, std::vector<json::value>& out) {
  if (const auto* values = rule_of(rules, "enum")) {
    for (const auto& value : values->as_array()) {
      if (value.is_string()) add_misspelt(std::string(value.get_string()), out);
    }
  }
  if (const auto* pattern = rule_of(rules, "pattern")) {
    for (int i = 0; i < kMatches; ++i) add_misspelt(generator_.matching(std::string_view(pattern->as_string())), out);
  }
  if (const auto* format = rule_of(rules, "format")) add_format(std::string_view(format->as_string()), out);
}

void EdgeValues::add_lists(const json::object& rules, std::vector<json::value>& out) {
  const auto* items = rule_of(rules, "items");
  if (items == nullptr) return;
  const auto item = generator_.good(*items);
  out.push_back(json::array{item});
  out.push_back(json::array{item, item});
  for (const auto* keyword : {"minItems", "maxItems"}) {
    const auto* limit = rule_of(rules, keyword);
    if (limit == nullptr) continue;
    const auto size = static_cast<std::size_t>(limit->as_int64());
    for (const auto n : {size, size + 1}) {
      if (n <= kMaxItems) out.push_back(json::array(n, item));
    }
  }
}

std::vector<json::value> EdgeValues::variants(const json::value& schema, const json::value& good) {
  auto out = of(schema);
  const auto& rules = schemas_.resolved(schema).as_object();
  for (const auto* keyword : {"anyOf", "allOf"}) {
    const auto* parts = rule_of(rules, keyword);
    if (parts == nullptr) continue;
    for (const auto& part : parts->as_array()) {
      if (!schemas_.accepts(part, good)) continue;
      auto more = variants(part, good);
      std::ranges::move(more, std::back_inserter(out));
    }
  }
  if (const auto* object = good.if_object()) add_members(rules, *object, out);
  const auto* array = good.if_array();
  const auto* items = rule_of(rules, "items");
  if (array == nullptr || array->empty() || items == nullptr) return out;
  for (auto& one : variants(*items, array->front())) {
    auto changed = *array;
    changed.front() = std::move(one);
    out.emplace_back(std::move(changed));
  }
  return out;
}

void EdgeValues::add_members(const json::object& rules, const json::object& good, std::vector<json::value>& out) {
  const auto* properties = rule_of(rules, "properties");
  if (properties == nullptr) return;
  auto more = good;
  more["unexpected"] = 1;
  out.emplace_back(std::move(more));
  for (const auto& [key, part] : properties->as_object()) {
    const auto* member = good.if_contains(key);
    if (member == nullptr) continue;
    auto less = good;
    less.erase(key);
    out.emplace_back(std::move(less));
    for (auto& one : variants(part, *member)) {
      auto changed = good;
      changed[key] = std::move(one);
      out.emplace_back(std::move(changed));
    }
  }
}

}  // namespace fencepost::test
