#include "cli/answer_text.hpp"

#include <limits>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/uint256.hpp"

namespace fencepost::cli {

namespace json = boost::json;

const json::value* find_at(const json::value& value, std::string_view path) {
  const auto* at = &value;
  while (true) {
    const auto dot = path.find('.');
    const auto* object = at->if_object();
    at = object == nullptr ? nullptr : object->if_contains(path.substr(0, dot));
    if (at == nullptr || at->is_null()) return nullptr;
    if (dot == std::string_view::npos) return at;
    path.remove_prefix(dot + 1);
  }
}

std::string text_at(const json::value& value, std::string_view path) {
  const auto* found = find_at(value, path);
  if (found == nullptr) return "";
  return found->is_string() ? std::string(found->get_string()) : json::serialize(*found);
}

std::optional<std::int64_t> int_at(const json::value& value, std::string_view path) {
  const auto number = parse_uint256(text_at(value, path));
  if (!number || *number > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return number->convert_to<std::int64_t>();
}

std::string when(const json::value& value, std::string_view path, std::size_t length) {
  auto text = text_at(value, path).substr(0, length);
  if (const auto t = text.find('T'); t != std::string::npos) text[t] = ' ';
  return text;
}

std::string when_utc(const json::value& value, std::string_view path) {
  const auto text = when(value, path);
  return text.empty() ? "" : text + " UTC";
}

const json::array& items_of(const json::value& answer) {
  static const json::array kNone;
  const auto* items = find_at(answer, "items");
  return items != nullptr && items->is_array() ? items->get_array() : kNone;
}

}  // namespace fencepost::cli
