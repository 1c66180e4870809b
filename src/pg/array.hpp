// The elements of a column that is an array, as PostgreSQL writes it: {1,2,NULL}, {"a \"word\"",b}.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pg/result.hpp"

namespace fencepost::pg {

// One dimension; NULL elements are empty. Throws `bad_column` if the text is no such array.
std::vector<std::optional<std::string>> parse_array(std::string_view text);

// The column as a vector of T, or of std::optional<T> where elements may be NULL. An array that is NULL is empty.
// Throws `bad_column` if an element does not parse, or is NULL and T is not optional.
template <class T>
std::vector<T> get_array(const Row& row, std::string_view column);

namespace detail {

[[noreturn]] void bad_element(std::string_view column, std::string_view why);

template <class T>
T element(const std::optional<std::string>& text, std::string_view column) {
  if constexpr (kIsOptional<T>) {
    if (!text) return std::nullopt;
    return element<typename T::value_type>(text, column);
  } else {
    if (!text) bad_element(column, "has an element that is NULL");
    T value{};
    if constexpr (std::is_same_v<decltype(read(std::string_view(*text), value)), void>) {
      read(std::string_view(*text), value);
    } else if (!read(std::string_view(*text), value)) {
      bad_element(column, "has an element that does not parse");
    }
    return value;
  }
}

}  // namespace detail

template <class T>
std::vector<T> get_array(const Row& row, std::string_view column) {
  static_assert(!std::is_same_v<T, std::string_view>, "the text of an element does not outlive the call");
  const auto text = row.get<std::optional<std::string_view>>(column);
  std::vector<T> out;
  if (!text) return out;
  const auto elements = parse_array(*text);
  out.reserve(elements.size());
  for (const auto& each : elements) out.push_back(detail::element<T>(each, column));
  return out;
}

}  // namespace fencepost::pg
