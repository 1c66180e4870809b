// Reads bodies and queries strictly: an unknown member or parameter is refused, never ignored.
//
// All functions throw Exception kInvalid, with `field` (of a body) or `parameter` (of a query) in the context; the
// server turns it into the answer. Pure: no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/value.hpp>

#include "base/json_reader.hpp"
#include "http/message.hpp"

namespace fencepost::http {

inline constexpr std::size_t kBatchMaxItems = 1000;
inline constexpr std::size_t kPageMaxItems = 200;
inline constexpr std::size_t kPageDefaultItems = 50;
inline constexpr std::size_t kReasonMaxCharacters = 500;

// Returns the value, or throws the error.
template <class T>
T need(Result<T> result) {
  if (!result) throw Exception(std::move(result).error());
  return std::move(*result);
}

// The body as JSON. Throws `bad_json`.
boost::json::value read_body(const Request& request);

// Throws `invalid_parameter` when a query parameter is not in `known` or is given twice.
void check_query(const Request& request, std::span<const std::string_view> known);
inline void check_query(const Request& request, std::initializer_list<std::string_view> known) {
  check_query(request, std::span(known.begin(), known.size()));
}

// Throws `invalid_parameter`: "limit: expected a number from 1 to 200, got \"x\"".
[[noreturn]] void refuse_parameter(std::string_view name, std::string_view expected, std::string_view got);

// The parameter's value. Throws `invalid_parameter` when the parameter is missing.
std::string required_parameter(const Request& request, std::string_view name);

// The value of the path's {name:id}. Throws `invalid_parameter` for 0, which is no chain.
std::int64_t positive_param(const Request& request, std::string_view name);

// ?limit=, from 1 to `max`; `fallback` when absent.
std::size_t read_limit(const Request& request, std::size_t fallback = kPageDefaultItems,
                       std::size_t max = kPageMaxItems);

// ?cursor= of a list in the order of ids: an id above 0; nullopt when absent.
std::optional<std::int64_t> read_id_cursor(const Request& request);

// The items of {"items": […]}, not yet read, so that a bad item fails alone. Throws `too_many_items` over
// kBatchMaxItems.
std::vector<JsonReader> read_batch(const JsonReader& in);

// A text of at most `max_characters`, without NUL. May be empty.
std::string read_text(const JsonReader& in, std::size_t max_characters);

// The reason of {"reason": "…"}: 1 to 500 characters, not all of them blank.
std::string read_reason(const JsonReader& in);

}  // namespace fencepost::http
