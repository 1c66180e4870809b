#include "base/json.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>

#include "base/text.hpp"

namespace fencepost {
namespace {

namespace json = boost::json;
using Code = json::error_code;

// Builds the document as Boost.JSON's own parser does, and also refuses repeated keys and numbers that lose precision.
class StrictHandler {
 public:
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  json::value release() { return stack_.release(); }
  // Why this handler refused the text; empty when the parser refused it.
  const std::string& refusal() const { return refusal_; }

  bool on_document_begin(Code&) { return stack_.reset(), true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return true; }
  bool on_object_end(std::size_t count, Code& ec) {
    stack_.push_object(count);
    return check_keys(count, ec);
  }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t count, Code&) { return stack_.push_array(count), true; }
  bool on_key_part(json::string_view part, std::size_t, Code&) {
    stack_.push_chars(part);
    key_.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, Code&) {
    stack_.push_key(part);
    key_.append(part.data(), part.size());
    keys_.push_back(std::exchange(key_, {}));
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, Code&) { return stack_.push_chars(part), true; }
  bool on_string(json::string_view part, std::size_t, Code&) { return stack_.push_string(part), true; }
  bool on_number_part(json::string_view, Code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, Code&) { return stack_.push_int64(value), true; }
  bool on_uint64(std::uint64_t value, json::string_view, Code&) { return stack_.push_uint64(value), true; }
  bool on_double(double value, json::string_view text, Code& ec) {
    if (text.find_first_of(".eE") == json::string_view::npos) {
      return refuse("integer over 64 bits; write it as a string", ec);
    }
    if (!std::isfinite(value)) return refuse("number out of range", ec);
    stack_.push_double(value);
    return true;
  }
  bool on_bool(bool value, Code&) { return stack_.push_bool(value), true; }
  bool on_null(Code&) { return stack_.push_null(), true; }
  bool on_comment_part(json::string_view, Code&) { return true; }
  bool on_comment(json::string_view, Code&) { return true; }

 private:
  // The last `count` keys are those of the object that ends here: nested objects have removed theirs already.
  bool check_keys(std::size_t count, Code& ec) {
    const auto first = keys_.end() - static_cast<std::ptrdiff_t>(count);
    std::sort(first, keys_.end());
    if (const auto twice = std::adjacent_find(first, keys_.end()); twice != keys_.end()) {
      return refuse(fmt::format("the object that ends here has the key {} twice", quote(*twice)), ec);
    }
    keys_.erase(first, keys_.end());
    return true;
  }

  bool refuse(std::string why, Code& ec) {
    refusal_ = std::move(why);
    ec = json::error::syntax;
    return false;
  }

  json::value_stack stack_;
  std::vector<std::string> keys_;
  std::string key_;
  std::string refusal_;
};

Error bad_json(std::string_view text, std::size_t offset, std::string_view reason) {
  const auto before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::ranges::count(before, '\n') + 1;
  const auto last_break = before.rfind('\n');
  const auto column = before.size() - (last_break == std::string_view::npos ? 0 : last_break + 1) + 1;
  return invalid("bad_json", fmt::format("not valid JSON at line {}, column {}: {}", line, column, reason));
}

}  // namespace

Result<json::value> parse_json(std::string_view text, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return fail({ErrorKind::kTooLarge,
                 "json_too_large",
                 fmt::format("the JSON text is longer than {} bytes", max_bytes),
                 {},
                 {}});
  }
  json::parse_options options;
  options.max_depth = kJsonMaxDepth;
  json::basic_parser<StrictHandler> parser(options);
  Code ec;
  const auto parsed = parser.write_some(false, text.data(), text.size(), ec);
  if (ec) {
    const auto& refusal = parser.handler().refusal();
    return fail(bad_json(text, parsed, refusal.empty() ? ec.message() : refusal));
  }
  if (parsed < text.size()) return fail(bad_json(text, parsed, "more text after the document"));
  return parser.handler().release();
}

std::string describe_json(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return value.get_bool() ? "true" : "false";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "number " + json::serialize(value);
    case json::kind::string:
      return quote(value.get_string());
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  std::unreachable();
}

}  // namespace fencepost
