#include "http/request_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/id_text.hpp"
#include "base/text.hpp"

namespace fencepost::http {
namespace {

constexpr std::size_t kBytesPerCharacter = 4;  // of UTF-8, at most

std::size_t count_characters(std::string_view utf8) {
  const auto starts_one = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  return static_cast<std::size_t>(std::ranges::count_if(utf8, starts_one));
}

}  // namespace

boost::json::value read_body(const Request& request) {
  return need(request.json());
}

void check_query(const Request& request, std::span<const std::string_view> known) {
  const auto& given = request.query_parameters();
  for (const auto& [name, value] : given) {
    const auto same_name = [&](const auto& other) { return other.first == name; };
    if (std::ranges::count_if(given, same_name) > 1) refuse_parameter(name, "one value", "several");
    if (std::ranges::find(known, name) != known.end()) continue;
    throw Exception(
        invalid("invalid_parameter", fmt::format("{}: unknown parameter{}", quote(name), did_you_mean(name, known)))
            .with("parameter", name));
  }
}

void refuse_parameter(std::string_view name, std::string_view expected, std::string_view got) {
  throw Exception(bad_parameter(name, expected, got));
}

std::string required_parameter(const Request& request, std::string_view name) {
  auto text = need(request.query_as<std::string>(name));
  if (!text) {
    throw Exception(
        invalid("invalid_parameter", fmt::format("{}: is required", name)).with("parameter", std::string(name)));
  }
  return std::move(*text);
}

std::int64_t positive_param(const Request& request, std::string_view name) {
  const auto id = request.param_id(name);
  if (id == 0) refuse_parameter(name, "a positive integer", "0");
  return id;
}

std::size_t read_limit(const Request& request, std::size_t fallback, std::size_t max) {
  const auto limit = need(request.query_or<std::size_t>("limit", fallback));
  if (limit < 1 || limit > max) {
    refuse_parameter("limit", fmt::format("a number from 1 to {}", max), std::to_string(limit));
  }
  return limit;
}

std::vector<JsonReader> read_batch(const JsonReader& in) {
  in.reject_unknown({"items"});
  const auto items = in.field("items");
  if (const auto* array = items.value().if_array(); array != nullptr && array->size() > kBatchMaxItems) {
    items.reject("too_many_items", fmt::format("expected at most {} items, got {}", kBatchMaxItems, array->size()));
  }
  std::vector<JsonReader> out;
  // Each item has its own reader, so that errors name the fields as they do for a single request.
  for (const auto& item : items.array(kBatchMaxItems)) out.emplace_back(item.value(), "item");
  return out;
}

std::optional<std::int64_t> read_id_cursor(const Request& request) {
  const auto text = request.query("cursor");
  if (!text) return std::nullopt;
  const auto id = parse_id(*text);
  if (!id || *id == 0) refuse_parameter("cursor", "nextCursor of the page before", *text);
  return id;
}

std::string read_text(const JsonReader& in, std::size_t max_characters) {
  auto text = in.string(max_characters * kBytesPerCharacter);
  if (count_characters(text) > max_characters) {
    in.reject("bad_request",
              fmt::format("expected at most {} characters, got {}", max_characters, count_characters(text)));
  }
  return text;
}

std::string read_reason(const JsonReader& in) {
  const auto field = in.field("reason");
  auto reason = read_text(field, kReasonMaxCharacters);
  const bool blank = std::ranges::all_of(reason, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
  if (blank)
    field.reject("bad_request", fmt::format("expected 1 to {} characters, not all blank", kReasonMaxCharacters));
  return reason;
}

}  // namespace fencepost::http
