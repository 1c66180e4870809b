#include "tests/support/value_generator.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/error.hpp"
#include "base/uuid.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

constexpr int kMaxTries = 200;
constexpr int kMaxDepth = 6;
constexpr std::size_t kMaxRepeats = 12;  // of what a pattern repeats without end
constexpr std::size_t kMaxSuggestions = 50;

// Generates from a pattern by recursive descent: alternatives of sequences of repeated atoms.
class Pattern {
 public:
  Pattern(std::string_view pattern, ValueGenerator& generator) : rest_(pattern), generator_(generator) {}

  std::string make() {
    auto out = alternatives();
    if (!rest_.empty()) throw Exception(internal("bad_schema", fmt::format("pattern: unexpected {}", rest_)));
    return out;
  }

 private:
  char take() {
    if (rest_.empty()) throw Exception(internal("bad_schema", "a pattern ends too soon"));
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  bool next_is(char c) const { return rest_.starts_with(c); }

  // All of them are made, and one is chosen: what is not chosen has to be read all the same.
  std::string alternatives() {
    std::vector<std::string> all{sequence()};
    while (next_is('|')) {
      take();
      all.push_back(sequence());
    }
    return all[generator_.below(all.size())];
  }

  std::string sequence() {
    std::string out;
    while (!rest_.empty() && !next_is('|') && !next_is(')')) {
      const auto start = rest_;
      std::string once = atom();
      const auto used = start.substr(0, start.size() - rest_.size());
      const auto [least, most] = repeats();
      const auto times = least + generator_.below(most - least + 1);
      for (std::size_t i = 0; i < times; ++i) {
        out += once;
        Pattern again(used, generator_);
        once = again.atom();
      }
    }
    return out;
  }

  std::string atom() {
    const char c = take();
    if (c == '^' || c == '$') return {};
    if (c == '(') {
      auto out = alternatives();
      take();
      return out;
    }
    if (c == '[') return char_class();
    if (c == '\\') return std::string(1, escaped());
    return std::string(1, c);
  }

  std::pair<std::size_t, std::size_t> repeats() {
    if (next_is('*')) return take(), std::pair<std::size_t, std::size_t>(0, kMaxRepeats);
    if (next_is('+')) return take(), std::pair<std::size_t, std::size_t>(1, kMaxRepeats);
    if (next_is('?')) return take(), std::pair<std::size_t, std::size_t>(0, 1);
    if (!next_is('{')) return {1, 1};
    take();
    const auto least = number();
    const auto most = next_is(',') ? (take(), number()) : least;
    take();
    return {least, most};
  }

  std::size_t number() {
    std::size_t value = 0;
    while (!next_is(',') && !next_is('}')) value = value * 10 + static_cast<std::size_t>(take() - '0');
    return value;
  }

  char escaped() {
    const char c = take();
    if (c == 't') return '\t';
    if (c == 'r') return '\r';
    if (c != 'u') return c;
    std::string digits;
    for (int i = 0; i < 4; ++i) digits += take();
    return static_cast<char>(std::stoi(digits, nullptr, 16));
  }

  // Printable ASCII that is, or is not, in the class.
  std::string char_class() {
    const bool negated = next_is('^') && take() == '^';
    std::vector<bool> listed(128);
    while (!next_is(']')) {
      const char first = class_char();
      char last = first;
      if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        take();
        last = class_char();
      }
      for (auto c = static_cast<unsigned char>(first); c <= static_cast<unsigned char>(last); ++c) listed.at(c) = true;
    }
    take();
    std::string choice;
    for (char c = ' '; c < '\x7f'; ++c) {
      if (listed[static_cast<std::size_t>(c)] != negated) choice += c;
    }
    return std::string(1, choice.at(generator_.below(choice.size())));
  }
  char class_char() {
    const char c = take();
    return c == '\\' ? escaped() : c;
  }

  std::string_view rest_;
  ValueGenerator& generator_;
};

std::optional<std::int64_t> bound(const json::object& rules, std::string_view keyword) {
  const auto* rule = rules.if_contains(keyword);
  return rule == nullptr ? std::nullopt : std::optional(rule->to_number<std::int64_t>());
}

// Every value inside this one, itself included.
void collect(json::value& value, std::vector<json::value*>& out) {
  out.push_back(&value);
  if (auto* object = value.if_object()) {
    for (auto& member : *object) collect(member.value(), out);
  }
  if (auto* array = value.if_array()) {
    for (auto& element : *array) collect(element, out);
  }
}

}  // namespace

void ValueGenerator::suggest(const std::string& name, json::value value) {
  auto& known = suggestions_[name];
  if (known.size() < kMaxSuggestions) {
    known.push_back(std::move(value));
  } else {
    known[below(kMaxSuggestions)] = std::move(value);
  }
}

json::value ValueGenerator::good(const json::value& schema, std::string_view name) {
  for (int i = 0; i < kMaxTries; ++i) {
    auto value = attempt(schema, name, 0);
    if (schemas_.accepts(schema, value)) return value;
  }
  throw Exception(internal("bad_schema", fmt::format("found no value for {}", name)));
}

std::optional<json::value> ValueGenerator::broken(const json::value& schema, const json::value& good) {
  const std::vector<json::value> odd = {nullptr,
                                        true,
                                        -1,
                                        0,
                                        1.5,
                                        std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::uint64_t>::max(),
                                        "",
                                        "x",
                                        "-1",
                                        "007",
                                        "0x",
                                        "a\tb",
                                        json::value(std::string(600, 'x')),
                                        json::array(),
                                        json::object(),
                                        json::array{"x"}};
  for (int i = 0; i < kMaxTries; ++i) {
    auto value = good;
    std::vector<json::value*> places;
    collect(value, places);
    auto& place = *places[below(places.size())];
    auto* object = place.if_object();
    if (object != nullptr && !object->empty() && chance(40)) {
      object->erase(std::next(object->begin(), static_cast<std::ptrdiff_t>(below(object->size()))));
    } else if (object != nullptr && chance(60)) {
      (*object)["unexpected"] = 1;
    } else {
      place = odd[below(odd.size())];
    }
    if (!schemas_.accepts(schema, value)) return value;
  }
  return std::nullopt;
}

std::string ValueGenerator::matching(std::string_view pattern) {
  return Pattern(pattern, *this).make();
}

json::value ValueGenerator::attempt(const json::value& schema, std::string_view name, int depth) {
  const auto known = suggestions_.find(name);
  if (known != suggestions_.end() && chance(80)) {
    const auto& value = known->second[below(known->second.size())];
    if (schemas_.accepts(schema, value)) return value;
  }
  const auto& rules = schema.as_object();
  if (const auto* reference = rules.if_contains("$ref")) {
    return attempt(schemas_.resolve(reference->as_string()), name, depth);
  }
  if (const auto* any = rules.if_contains("anyOf")) {
    const auto& parts = any->as_array();
    return attempt(parts[below(parts.size())], name, depth);
  }
  if (const auto* values = rules.if_contains("enum")) {
    return values->as_array()[below(values->as_array().size())];
  }
  if (const auto* only = rules.if_contains("const")) return *only;
  if (const auto* examples = rules.if_contains("examples"); examples != nullptr && chance(20)) {
    return examples->as_array()[below(examples->as_array().size())];
  }
  const auto* type = rules.if_contains("type");
  if (type == nullptr) return anything(depth);
  const auto& types = *type;
  const auto& one = types.is_array() ? types.as_array()[below(types.as_array().size())] : types;
  return of_type(std::string_view(one.as_string()), rules, depth);
}

json::value ValueGenerator::of_type(std::string_view type, const json::object& rules, int depth) {
  if (type == "null") return nullptr;
  if (type == "boolean") return chance(50);
  if (type == "integer") return integer(rules);
  if (type == "number") return static_cast<double>(below(1000)) + 0.5;
  if (type == "string") return text(rules);
  if (type == "object") return object(rules, depth);
  json::array out;
  const auto* items = rules.if_contains("items");
  const auto least = static_cast<std::size_t>(bound(rules, "minItems").value_or(0));
  for (auto left = least + below(3); left > 0; --left) {
    out.push_back(items == nullptr ? anything(depth + 1) : attempt(*items, {}, depth + 1));
  }
  return out;
}

json::value ValueGenerator::text(const json::object& rules) {
  if (const auto* format = rules.if_contains("format"); format != nullptr && format->as_string() == "uuid") {
    return json::value(matching("^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$"));
  }
  if (const auto* pattern = rules.if_contains("pattern")) {
    return json::value(matching(std::string_view(pattern->as_string())));
  }
  const auto most = static_cast<std::size_t>(bound(rules, "maxLength").value_or(20));
  const auto length = chance(10) ? most : below(std::min<std::size_t>(most, 20) + 1);
  std::string out;
  for (std::size_t i = 0; i < length; ++i) out += chance(10) ? "é" : std::string(1, static_cast<char>('a' + below(26)));
  return json::value(out);
}

json::value ValueGenerator::integer(const json::object& rules) {
  const auto least = bound(rules, "minimum").value_or(-1000);
  const auto most = bound(rules, "maximum").value_or(1000);
  if (chance(10)) return least;
  if (chance(10)) return most;
  const auto span = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  const auto near = std::min<std::uint64_t>(span, chance(70) ? 200'000 : span);
  return least + static_cast<std::int64_t>(near == 0 ? 0 : below(near));
}

json::value ValueGenerator::object(const json::object& rules, int depth) {
  json::object out;
  std::vector<std::string_view> required;
  if (const auto* names = rules.if_contains("required")) {
    for (const auto& name : names->as_array()) required.emplace_back(name.as_string());
  }
  if (const auto* properties = rules.if_contains("properties")) {
    for (const auto& [name, schema] : properties->as_object()) {
      const std::string_view key = name;
      if (std::ranges::find(required, key) != required.end() || chance(50)) out[key] = attempt(schema, key, depth + 1);
    }
  }
  const auto* others = rules.if_contains("additionalProperties");
  if (others != nullptr && others->is_bool() && others->get_bool() && depth < kMaxDepth) {
    for (auto left = below(3); left > 0; --left) out[matching("[a-z]{1,8}")] = anything(depth + 1);
  }
  return out;
}

json::value ValueGenerator::anything(int depth) {
  switch (below(depth < kMaxDepth ? 6 : 4)) {
    case 0:
      return nullptr;
    case 1:
      return chance(50);
    case 2:
      return static_cast<std::int64_t>(below(1'000'000)) - 500'000;
    case 3:
      return text({});
    case 4:
      return json::array{anything(depth + 1)};
    default:
      return json::object{{"k", anything(depth + 1)}};
  }
}

}  // namespace fencepost::test
