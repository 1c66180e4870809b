// The parameters of one statement.
//
// Scalars are sent as text without a type: the server infers the type of `$1` from the statement.
// Vectors are sent as binary arrays with their type, ready for `unnest($1)`, without quoting or parsing.
// PostgreSQL cannot store text that contains NUL; such text throws `nul_in_text` instead of being truncated.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/uuid.hpp"

namespace fencepost::pg {

using Bytes = std::vector<std::byte>;

class Params {
 public:
  Params() = default;

  template <class... Values>
  static Params of(const Values&... values) {
    Params params;
    (params.add(values), ...);
    return params;
  }

  Params& add(std::nullptr_t);
  Params& add(bool value);
  Params& add(std::int32_t value) { return add(std::int64_t{value}); }
  Params& add(std::int64_t value);
  Params& add(std::uint64_t value);
  Params& add(double value);
  Params& add(std::string_view value);
  Params& add(const std::string& value) { return add(std::string_view(value)); }
  Params& add(const char* value) { return add(std::string_view(value)); }
  Params& add(const Uuid& value);
  Params& add(TimePoint value);
  Params& add(const Bytes& value);

  template <class T>
  Params& add(const std::optional<T>& value) {
    return value ? add(*value) : add(nullptr);
  }

  // Arrays. T: bool, std::int32_t, std::int64_t, std::string, std::string_view, Uuid, TimePoint, Bytes, or
  // std::optional of one of them for arrays with NULLs.
  template <class T>
  Params& add(const std::vector<T>& values);

  std::size_t size() const { return entries_.size(); }

  // The arguments for libpq. The pointers stay valid until the next `add` or the end of the object.
  struct Wire {
    std::vector<const char*> values;
    std::vector<int> lengths;
    std::vector<int> formats;
    std::vector<std::uint32_t> types;
  };
  void to_wire(Wire& wire) const;

 private:
  struct Entry {
    std::size_t offset;
    std::size_t length;
    std::uint32_t type;  // 0: the server infers it
    bool binary;
    bool null;
  };

  Params& add_text(std::string_view text);
  std::size_t begin_array(std::uint32_t element_type, std::size_t count);
  Params& end_array(std::size_t start, std::uint32_t array_type, bool has_null);
  void put_int32(std::int32_t value);
  void put_int64(std::int64_t value);
  void put_element(bool value);
  void put_element(std::int32_t value);
  void put_element(std::int64_t value);
  void put_element(std::string_view value);
  void put_element(const Uuid& value);
  void put_element(TimePoint value);
  void put_element(const Bytes& value);

  std::string buffer_;
  std::vector<Entry> entries_;
};

namespace detail {

struct ArrayType {
  std::uint32_t element;
  std::uint32_t array;
};

// The fixed OIDs of pg_type.dat.
template <class T>
inline constexpr ArrayType kArrayType{};
template <>
inline constexpr ArrayType kArrayType<bool>{16, 1000};
template <>
inline constexpr ArrayType kArrayType<Bytes>{17, 1001};
template <>
inline constexpr ArrayType kArrayType<std::int64_t>{20, 1016};
template <>
inline constexpr ArrayType kArrayType<std::int32_t>{23, 1007};
template <>
inline constexpr ArrayType kArrayType<std::string>{25, 1009};
template <>
inline constexpr ArrayType kArrayType<std::string_view>{25, 1009};
template <>
inline constexpr ArrayType kArrayType<TimePoint>{1184, 1185};
template <>
inline constexpr ArrayType kArrayType<Uuid>{2950, 2951};

template <class T>
struct Unwrapped {
  using type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using type = T;
};

}  // namespace detail

template <class T>
Params& Params::add(const std::vector<T>& values) {
  using Element = typename detail::Unwrapped<T>::type;
  constexpr auto kType = detail::kArrayType<Element>;
  static_assert(kType.array != 0, "no PostgreSQL array type is known for this element");
  const auto start = begin_array(kType.element, values.size());
  bool has_null = false;
  for (const auto& value : values) {
    if constexpr (std::is_same_v<T, Element>) {
      put_element(value);
    } else if (value) {
      put_element(*value);
    } else {
      has_null = true;
      put_int32(-1);
    }
  }
  return end_array(start, kType.array, has_null);
}

}  // namespace fencepost::pg
