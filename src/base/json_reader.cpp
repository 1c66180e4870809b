#include "base/json_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "base/error.hpp"
#include "base/id_text.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/uint256.hpp"

namespace fencepost {
namespace {

constexpr const char* kCode = "bad_request";

}  // namespace

JsonReader::JsonReader(const boost::json::value& document, std::string_view name) : value_(&document), name_(name) {}

JsonReader JsonReader::field(std::string_view key) const {
  auto path = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  if (!present()) return {nullptr, name_, std::move(path)};
  const auto* object = value_->if_object();
  if (object == nullptr) reject_type("an object");
  return {object->if_contains(key), name_, std::move(path)};
}

bool JsonReader::present() const {
  return value_ != nullptr && !value_->is_null();
}

bool JsonReader::is_null() const {
  return value_ != nullptr && value_->is_null();
}

const boost::json::value& JsonReader::value() const {
  if (value_ == nullptr) reject(kCode, "is required");
  return *value_;
}

std::string JsonReader::string(std::size_t max_bytes) const {
  const auto* text = value().if_string();
  if (text == nullptr) reject_type("a string");
  if (text->size() > max_bytes) {
    reject(kCode, fmt::format("expected at most {} bytes, got {}", max_bytes, text->size()));
  }
  if (text->find('\0') != boost::json::string::npos) reject(kCode, "must not contain a NUL character");
  return std::string(std::string_view(*text));
}

std::optional<std::string> JsonReader::optional_string(std::size_t max_bytes) const {
  if (!present()) return std::nullopt;
  return string(max_bytes);
}

bool JsonReader::boolean() const {
  const auto* flag = value().if_bool();
  if (flag == nullptr) reject_type("true or false");
  return *flag;
}

std::int64_t JsonReader::int64(std::int64_t min, std::int64_t max) const {
  const auto& v = value();
  if (!v.is_int64() && !v.is_uint64()) reject_type("an integer");
  // Boost.JSON stores an integer as uint64 only when it exceeds the range of int64.
  if (!v.is_int64() || v.get_int64() < min || v.get_int64() > max) {
    reject_type(fmt::format("an integer from {} to {}", min, max));
  }
  return v.get_int64();
}

std::uint64_t JsonReader::uint64(std::uint64_t min, std::uint64_t max) const {
  const auto& v = value();
  if (!v.is_int64() && !v.is_uint64()) reject_type("an integer");
  const bool negative = v.is_int64() && v.get_int64() < 0;
  const auto number = v.is_uint64() ? v.get_uint64() : static_cast<std::uint64_t>(v.get_int64());
  if (negative || number < min || number > max) reject_type(fmt::format("an integer from {} to {}", min, max));
  return number;
}

std::string JsonReader::uint256_text() const {
  const auto* text = value().if_string();
  if (text == nullptr) reject_type("decimal or 0x string");
  const auto number = parse_uint256(*text);
  if (!number) reject(kCode, number.error().message);
  return to_decimal(*number);
}

std::int64_t JsonReader::int64_text() const {
  const auto* text = value().if_string();
  const auto number = text == nullptr ? std::nullopt : parse_id(*text);
  if (!number) reject_type(fmt::format("a string of {}", kIdForm));
  return *number;
}

Uuid JsonReader::uuid() const {
  const auto* text = value().if_string();
  if (text == nullptr) reject_type("a UUID");
  const auto uuid = Uuid::parse(*text);
  if (!uuid) reject(kCode, uuid.error().message);
  return *uuid;
}

std::vector<JsonReader> JsonReader::array(std::size_t max_size) const {
  const auto* elements = value().if_array();
  if (elements == nullptr) reject_type("an array");
  if (elements->size() > max_size) {
    reject(kCode, fmt::format("expected at most {} elements, got {}", max_size, elements->size()));
  }
  std::vector<JsonReader> out;
  out.reserve(elements->size());
  for (std::size_t i = 0; i < elements->size(); ++i) {
    out.push_back(JsonReader(&(*elements)[i], name_, fmt::format("{}[{}]", path_, i)));
  }
  return out;
}

std::size_t JsonReader::index_of(std::span<const std::string_view> names) const {
  const auto* text = value().if_string();
  if (text == nullptr) reject_type(one_of_list(names));
  const auto found = std::ranges::find(names, std::string_view(*text));
  if (found == names.end()) reject_type(one_of_list(names));
  return static_cast<std::size_t>(found - names.begin());
}

void JsonReader::reject_unknown(std::span<const std::string_view> known, std::span<const Hint> hints) const {
  const auto* object = value().if_object();
  if (object == nullptr) reject_type("an object");
  for (const auto& member : *object) {
    const std::string_view key = member.key();
    if (std::ranges::find(known, key) != known.end()) continue;
    const auto hint = std::ranges::find(hints, key, &Hint::member);
    const auto guess = hint == hints.end() ? did_you_mean(key, known) : fmt::format("; {}", hint->words);
    throw Exception(invalid(kCode, fmt::format("{}: unknown field {}{}", name(), quote(key), guess))
                        .with("field", field(plain_text(key, 64)).path()));
  }
}

void JsonReader::reject(std::string code, std::string_view reason) const {
  throw Exception(invalid(std::move(code), fmt::format("{}: {}", name(), reason)).with("field", name()));
}

void JsonReader::reject_type(std::string_view expected) const {
  reject(kCode, fmt::format("expected {}, got {}", expected, describe_json(value())));
}

}  // namespace fencepost
