#include "tests/support/json_schema.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <regex>
#include <set>

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/error.hpp"
#include "base/id_text.hpp"
#include "base/uint256.hpp"
#include "base/uuid.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

// std::regex needs stack for every character.
constexpr std::size_t kMaxMatched = 4096;

const std::set<std::string_view> kKnown = {"$ref", "type", "enum", "const", "anyOf", "allOf", "properties", "required",
                                           "items", "propertyNames", "minItems", "maxItems", "uniqueItems",
                                           "minProperties", "minimum", "maximum", "minLength", "maxLength", "pattern",
                                           "format", "x-maxBytes", "additionalProperties",
                                           // These say nothing that a value could break.
                                           "description", "examples", "default"};
const std::set<std::string_view> kFormats = {"uuid", "date-time", "uint256", "int64"};
const std::set<std::string_view> kTypes = {"object", "array", "string", "integer", "number", "boolean", "null"};

Exception bad_schema(std::string message) {
  return Exception(internal("bad_schema", std::move(message)));
}

std::size_t count_characters(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool is_integer(const json::value& value) {
  return value.is_int64() || value.is_uint64();
}

// 64 bits of mantissa hold every integer of JSON here.
long double number_of(const json::value& value) {
  if (value.is_int64()) return static_cast<long double>(value.get_int64());
  if (value.is_uint64()) return static_cast<long double>(value.get_uint64());
  return static_cast<long double>(value.get_double());
}

bool has_type(const json::value& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return is_integer(value);
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  throw bad_schema(fmt::format("unknown type {}", type));
}

std::vector<std::string_view> types_of(const json::value& type) {
  if (type.is_string()) return {std::string_view(type.get_string())};
  std::vector<std::string_view> types;
  for (const auto& one : type.as_array()) types.emplace_back(one.as_string());
  return types;
}

// Whether a decimal or 0x text is at most 2^63 - 1; a minus sign is allowed for.
bool fits_int64(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto number = parse_uint256(text);
  return number && *number <= Uint256(std::numeric_limits<std::int64_t>::max());
}

bool has_format(std::string_view text, std::string_view format) {
  if (format == "uuid") return Uuid::parse(text).has_value();
  if (format == "uint256") return parse_uint256(text).has_value();
  if (format == "int64") return fits_int64(text);
  if (format == "date-time") {
    static const std::regex pattern(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))");
    return std::regex_match(text.begin(), text.end(), pattern);
  }
  throw bad_schema(fmt::format("unknown format {}", format));
}

// One value against one schema; what is wrong is added to `wrong`.
class Check {
 public:
  Check(const JsonSchema& schemas, std::vector<std::string>& wrong) : schemas_(schemas), wrong_(wrong) {}

  void run(const json::value& schema, const json::value& value, const std::string& path) {
    const auto& rules = schema.as_object();
    for (const auto& rule : rules) {
      if (!kKnown.contains(std::string_view(rule.key()))) {
        throw bad_schema(fmt::format("unknown keyword {}", std::string_view(rule.key())));
      }
    }
    if (const auto* reference = rules.if_contains("$ref")) run(schemas_.resolve(reference->as_string()), value, path);
    if (const auto* all = rules.if_contains("allOf")) {
      for (const auto& part : all->as_array()) run(part, value, path);
    }
    any_of(rules, value, path);
    type_and_values(rules, value, path);
    if (const auto* text = value.if_string()) string(rules, *text, path);
    if (value.is_number()) number(rules, value, path);
    if (const auto* array = value.if_array()) elements(rules, *array, path);
    if (const auto* object = value.if_object()) members(rules, *object, path);
    if (const auto* bytes = rules.if_contains("x-maxBytes")) {
      const auto size = value.is_string() ? value.get_string().size() : json::serialize(value).size();
      expect(static_cast<std::int64_t>(size) <= bytes->as_int64(), path, "expected fewer bytes");
    }
  }

 private:
  void expect(bool holds, const std::string& path, std::string what) {
    if (!holds) wrong_.push_back(fmt::format("{}: {}", path.empty() ? "/" : path, what));
  }

  void any_of(const json::object& rules, const json::value& value, const std::string& path) {
    const auto* any = rules.if_contains("anyOf");
    if (any == nullptr) return;
    const bool fits =
        std::ranges::any_of(any->as_array(), [&](const auto& one) { return schemas_.accepts(one, value); });
    expect(fits, path, "fits none of anyOf: " + json::serialize(value).substr(0, 100));
  }

  void type_and_values(const json::object& rules, const json::value& value, const std::string& path) {
    const auto shown = json::serialize(value).substr(0, 100);
    if (const auto* type = rules.if_contains("type")) {
      const auto fits = std::ranges::any_of(types_of(*type), [&](auto name) { return has_type(value, name); });
      expect(fits, path, fmt::format("expected {}, got {}", json::serialize(*type), shown));
    }
    if (const auto* values = rules.if_contains("enum")) {
      expect(std::ranges::find(values->as_array(), value) != values->as_array().end(), path,
             "not in the enum: " + shown);
    }
    if (const auto* only = rules.if_contains("const")) expect(value == *only, path, "not the constant: " + shown);
  }

  void string(const json::object& rules, std::string_view text, const std::string& path) {
    const auto length = static_cast<std::int64_t>(count_characters(text));
    const auto bound = [&](const char* keyword) {
      const auto* rule = rules.if_contains(keyword);
      return rule == nullptr ? std::optional<std::int64_t>() : rule->as_int64();
    };
    expect(length >= bound("minLength").value_or(length), path, "too short");
    expect(length <= bound("maxLength").value_or(length), path, "too long");
    if (const auto* pattern = rules.if_contains("pattern"); pattern != nullptr && text.size() <= kMaxMatched) {
      const std::regex compiled{std::string(pattern->as_string())};
      const bool matches = std::regex_search(text.begin(), text.end(), compiled);
      expect(matches, path, fmt::format("{:.80} does not match {}", text, std::string_view(pattern->as_string())));
    }
    if (const auto* format = rules.if_contains("format")) {
      const std::string_view name = format->as_string();
      expect(has_format(text, name), path, fmt::format("{:.80} is not a {}", text, name));
    }
  }

  void number(const json::object& rules, const json::value& value, const std::string& path) {
    if (const auto* least = rules.if_contains("minimum")) {
      expect(number_of(value) >= number_of(*least), path, "expected at least " + json::serialize(*least));
    }
    if (const auto* most = rules.if_contains("maximum")) {
      expect(number_of(value) <= number_of(*most), path, "expected at most " + json::serialize(*most));
    }
  }

  void elements(const json::object& rules, const json::array& array, const std::string& path) {
    const auto size = static_cast<std::int64_t>(array.size());
    if (const auto* least = rules.if_contains("minItems")) expect(size >= least->as_int64(), path, "too few items");
    if (const auto* most = rules.if_contains("maxItems")) expect(size <= most->as_int64(), path, "too many items");
    if (rules.contains("uniqueItems")) {
      for (std::size_t i = 1; i < array.size(); ++i) {
        expect(std::find(array.begin(), array.begin() + i, array[i]) == array.begin() + i, path, "an item is repeated");
      }
    }
    const auto* items = rules.if_contains("items");
    for (std::size_t i = 0; items != nullptr && i < array.size(); ++i) {
      run(*items, array[i], fmt::format("{}/{}", path, i));
    }
  }

  void members(const json::object& rules, const json::object& object, const std::string& path) {
    if (const auto* required = rules.if_contains("required")) {
      for (const auto& name : required->as_array()) {
        expect(object.contains(name.as_string()), path, "has no " + std::string(name.as_string()));
      }
    }
    if (const auto* least = rules.if_contains("minProperties")) {
      expect(static_cast<std::int64_t>(object.size()) >= least->as_int64(), path, "has too few members");
    }
    const auto* properties = rules.if_contains("properties");
    const auto* names = rules.if_contains("propertyNames");
    const auto* others = rules.if_contains("additionalProperties");
    for (const auto& [key, value] : object) {
      const auto at = fmt::format("{}/{}", path, std::string_view(key));
      if (names != nullptr) run(*names, json::value(key), at);
      if (const auto* own = properties == nullptr ? nullptr : properties->as_object().if_contains(key)) {
        run(*own, value, at);
      } else if (others != nullptr && others->is_object()) {
        run(*others, value, at);
      } else if (others != nullptr) {
        expect(others->as_bool(), at, "is not described");
      }
    }
  }

  const JsonSchema& schemas_;
  std::vector<std::string>& wrong_;
};

// One schema and those inside it.
class Review {
 public:
  explicit Review(std::vector<std::string>& wrong) : wrong_(wrong) {}

  void run(const json::value& schema, const std::string& path) {
    const auto* rules = schema.if_object();
    if (rules == nullptr) return note(path, "is not a schema");
    for (const auto& [keyword, rule] : *rules) {
      const auto at = fmt::format("{}/{}", path, std::string_view(keyword));
      if (!kKnown.contains(std::string_view(keyword))) note(at, "unknown keyword");
      look_inside(keyword, rule, at);
    }
    closed(*rules, path);
  }

 private:
  void note(const std::string& path, std::string_view what) { wrong_.push_back(fmt::format("{}: {}", path, what)); }

  void look_inside(std::string_view keyword, const json::value& rule, const std::string& at) {
    if (keyword == "properties") {
      for (const auto& [name, part] : rule.as_object()) run(part, fmt::format("{}/{}", at, std::string_view(name)));
    } else if (keyword == "anyOf" || keyword == "allOf") {
      for (const auto& part : rule.as_array()) run(part, at);
    } else if (keyword == "items" || keyword == "propertyNames" ||
               (keyword == "additionalProperties" && rule.is_object())) {
      run(rule, at);
    } else if (keyword == "type") {
      for (const auto type : types_of(rule)) {
        if (!kTypes.contains(type)) note(at, "unknown type");
      }
    } else if (keyword == "format" && !kFormats.contains(std::string_view(rule.as_string()))) {
      note(at, "unknown format");
    } else if (keyword == "pattern" && !compiles(std::string(rule.as_string()))) {
      note(at, "the pattern does not compile");
    }
  }

  static bool compiles(const std::string& pattern) {
    try {
      return std::regex(pattern).mark_count() <= pattern.size();
    } catch (const std::regex_error&) {
      return false;
    }
  }

  void closed(const json::object& rules, const std::string& path) {
    const auto* type = rules.if_contains("type");
    const bool object = type != nullptr && std::ranges::count(types_of(*type), std::string_view("object")) > 0;
    if (rules.contains("properties") && !object) note(path, "has properties and is no object");
    if (object && !rules.contains("additionalProperties")) note(path, "says nothing about additionalProperties");
  }

  std::vector<std::string>& wrong_;
};

}  // namespace

std::vector<std::string> JsonSchema::check(const json::value& schema, const json::value& value) const {
  std::vector<std::string> wrong;
  Check(*this, wrong).run(schema, value, "");
  return wrong;
}

std::vector<std::string> JsonSchema::review(const json::value& schema) const {
  std::vector<std::string> wrong;
  Review(wrong).run(schema, "");
  return wrong;
}

const json::value& JsonSchema::resolved(const json::value& schema) const {
  const auto* reference = schema.as_object().if_contains("$ref");
  return reference == nullptr ? schema : resolve(reference->as_string());
}

const json::value& JsonSchema::resolve(std::string_view reference) const {
  boost::system::error_code missing;
  const auto* found = reference.starts_with('#') ? document_.find_pointer(reference.substr(1), missing) : nullptr;
  if (found == nullptr) throw bad_schema(fmt::format("the reference {} leads nowhere", reference));
  return *found;
}

}  // namespace fencepost::test
