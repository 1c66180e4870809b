// What routes are asked, read strictly: a misspelt member or parameter is refused, never ignored.
//
// Everything here throws Exception kInvalid, with `field` (of a body) or `parameter` (of a query) in the context; the
// server answers with it. Pure: no I/O.
#pragma once

#include <cstddef>
#include <initializer_list>
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

// The value; throws the error.
template <class T>
T need(Result<T> result) {
  if (!result) throw Exception(std::move(result).error());
  return std::move(*result);
}

// The body as JSON (`bad_json`).
boost::json::value read_body(const Request& request);

// `invalid_parameter` for one that is not listed, or given twice.
void check_query(const Request& request, std::initializer_list<std::string_view> known);

// `invalid_parameter`: "limit: expected a number from 1 to 200, got \"x\"".
[[noreturn]] void refuse_parameter(std::string_view name, std::string_view expected, std::string_view got);

// The parameter; `invalid_parameter` when it is not there.
std::string required_parameter(const Request& request, std::string_view name);

// ?limit=, from 1 to `max`.
std::size_t read_limit(const Request& request, std::size_t fallback = kPageDefaultItems,
                       std::size_t max = kPageMaxItems);

// {"items": […]}, each still unread: a bad one fails alone. `too_many_items` over kBatchMaxItems.
std::vector<JsonReader> read_batch(const JsonReader& in);

// At most that many characters, no NUL. May be empty.
std::string read_text(const JsonReader& in, std::size_t max_characters);

// {"reason": "…"}: 1 to 500 characters, not all of them blank.
std::string read_reason(const JsonReader& in);

}  // namespace fencepost::http
