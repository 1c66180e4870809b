// Takes values out of a JSON document, and says exactly which one is wrong:
//
//   JsonReader in(body);
//   in.reject_unknown({"payload", "label", "mode"});
//   auto value = in.field("payload").field("value").uint256_text();
//   auto label = in.field("label").optional_string(64);
//   auto mode  = in.field("mode").one_of(kModes);
//
//   payload.value: expected decimal or 0x string, got "12z" [bad_request] field=payload.value
//
// A getter that finds the wrong thing throws Exception (kInvalid "bad_request", context `field`): a malformed
// request is for the edge to answer, and the code between reads like the document. A reader is a view: the
// document must outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/value.hpp>

#include "base/uuid.hpp"

namespace fencepost {

class JsonReader {
 public:
  // `name` is what errors call the document itself.
  explicit JsonReader(const boost::json::value& document, std::string_view name = "body");

  // A member of this object. An absent member is no error yet: its getters say "is required", the optional ones
  // give nullopt, and its own members are absent too. A JSON null is not `present` either. Throws when this is
  // neither an object nor absent.
  JsonReader field(std::string_view key) const;
  bool present() const;
  // "payload.items[3].value"; empty for the document itself.
  const std::string& path() const { return path_; }
  // The raw value; throws when absent.
  const boost::json::value& value() const;

  // At most `max_bytes` of UTF-8, no NUL (which PostgreSQL's text cannot hold). May be empty.
  std::string string(std::size_t max_bytes = 1024) const;
  std::optional<std::string> optional_string(std::size_t max_bytes = 1024) const;
  bool boolean() const;
  // JSON integers only: 1.0 and 1e3 are refused.
  std::int64_t int64(std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                     std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;
  std::uint64_t uint64(std::uint64_t min = 0, std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) const;

  // A string of decimal digits or a 0x quantity, up to 2^256 - 1 (uint256.hpp says which forms). The answer is
  // always decimal: how amounts are stored.
  std::string uint256_text() const;
  // An id that JavaScript would round, hence a string: decimal digits without leading zeros, up to 2^63 - 1.
  std::int64_t int64_text() const;
  Uuid uuid() const;

  // The elements; at most `max_size`.
  std::vector<JsonReader> array(std::size_t max_size) const;

  // The enumerator whose name the string is; the error lists the names.
  template <class Enum, std::size_t N>
  Enum one_of(const std::array<std::pair<std::string_view, Enum>, N>& table) const {
    std::array<std::string_view, N> names;
    for (std::size_t i = 0; i < N; ++i) names[i] = table[i].first;
    return table[index_of(names)].second;
  }
  // The index of the name the string is, for tables of another form.
  std::size_t index_of(std::span<const std::string_view> names) const;

  // Throws when this object has a member that is not listed, naming it and the nearest one that is.
  void reject_unknown(std::initializer_list<std::string_view> known) const;

  // For rules of the caller's own: throws with this value's path in front, `in.reject("bad_address", "expected …")`.
  [[noreturn]] void reject(std::string code, std::string_view reason) const;

 private:
  JsonReader(const boost::json::value* value, std::string_view name, std::string path)
      : value_(value), name_(name), path_(std::move(path)) {}

  [[noreturn]] void reject_type(std::string_view expected) const;

  const boost::json::value* value_;  // null when absent
  std::string_view name_;
  std::string path_;
};

}  // namespace fencepost
