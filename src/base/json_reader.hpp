// Reads values from a JSON document, and reports exactly which one is wrong:
//
//   JsonReader in(body);
//   in.reject_unknown({"payload", "label", "mode"});
//   auto value = in.field("payload").field("value").uint256_text();
//   auto label = in.field("label").optional_string(64);
//   auto mode  = in.field("mode").one_of(kModes);
//
//   payload.value: expected decimal or 0x string, got "12z" [bad_request] field=payload.value
//
// A getter that finds a wrong type or value throws Exception (kInvalid "bad_request", context `field`), which the
// request handler turns into the answer. Requires: the document outlives the reader, which is only a view.
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
  // Errors call the document itself `name`.
  explicit JsonReader(const boost::json::value& document, std::string_view name = "body");

  // A member of this object. An absent member is not an error yet: its getters throw "is required", its optional
  // getters return nullopt, and its own members are absent too. A JSON null is not `present` either. Throws when
  // this value is neither an object nor absent.
  JsonReader field(std::string_view key) const;
  bool present() const;
  // Whether the document says null here, which a change may mean as "remove".
  bool is_null() const;
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

  // A string of decimal digits or a 0x quantity, up to 2^256 - 1 (uint256.hpp lists the forms). Always
  // returns decimal digits, the form in which amounts are stored.
  std::string uint256_text() const;
  // A 64-bit id, sent as a string because JavaScript would round the number. base/id_text.hpp defines the form.
  std::int64_t int64_text() const;
  Uuid uuid() const;

  // The elements; at most `max_size`.
  std::vector<JsonReader> array(std::size_t max_size) const;

  // The enumerator that the string names; the error lists the valid names.
  template <class Enum, std::size_t N>
  Enum one_of(const std::array<std::pair<std::string_view, Enum>, N>& table) const {
    std::array<std::string_view, N> names;
    for (std::size_t i = 0; i < N; ++i) names[i] = table[i].first;
    return table[index_of(names)].second;
  }
  // The index in `names` of the string, for tables of another form.
  std::size_t index_of(std::span<const std::string_view> names) const;

  // What the error says about a member that callers of other interfaces send: `did you mean "gas"?`.
  struct Hint {
    std::string_view member;
    std::string_view words;
  };
  // Throws when this object has a member that is not in `known`; the error names it as `field`, and says what its hint
  // says, or else the nearest known member.
  void reject_unknown(std::span<const std::string_view> known, std::span<const Hint> hints = {}) const;
  void reject_unknown(std::initializer_list<std::string_view> known, std::span<const Hint> hints = {}) const {
    reject_unknown(std::span(known.begin(), known.size()), hints);
  }

  // For the caller's own rules: throws with this value's path before the reason, `in.reject("bad_address", "…")`.
  [[noreturn]] void reject(std::string code, std::string_view reason) const;

 private:
  JsonReader(const boost::json::value* value, std::string_view name, std::string path)
      : value_(value), name_(name), path_(std::move(path)) {}

  // The name of this value in errors.
  std::string name() const { return path_.empty() ? std::string(name_) : path_; }
  [[noreturn]] void reject_type(std::string_view expected) const;

  const boost::json::value* value_;  // null when absent
  std::string_view name_;
  std::string path_;
};

}  // namespace fencepost
