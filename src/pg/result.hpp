// The rows that a statement returned.
//
//   for (const auto row : result) use(row.get<Uuid>("tx_id"), row.get<std::optional<std::int64_t>>("nonce"));
//
// A ResultSet owns its memory; string_views into it are valid as long as it lives. Reading a NULL as a type that is not
// optional, a column that does not exist, or text that does not parse throws `bad_column`: the statement and the code
// do not match, which is a bug.
#pragma once

#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <libpq-fe.h>

#include <boost/json/value.hpp>

#include "base/clock.hpp"
#include "base/uuid.hpp"
#include "pg/params.hpp"

namespace fencepost::pg {

namespace detail {

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};

[[noreturn]] void bad_value(const PGresult* result, int column, std::string_view why);

void read(std::string_view text, std::string_view& out);
void read(std::string_view text, std::string& out);
bool read(std::string_view text, bool& out);
bool read(std::string_view text, Uuid& out);
bool read(std::string_view text, TimePoint& out);
bool read(std::string_view text, Bytes& out);
bool read(std::string_view text, boost::json::value& out);

template <class T>
  requires std::is_arithmetic_v<T>
bool read(std::string_view text, T& out) {
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  return ec == std::errc{} && end == text.data() + text.size();
}

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

}  // namespace detail

class Row {
 public:
  Row(const PGresult* result, int index) : result_(result), index_(index) {}

  template <class T>
  T get(int column) const {
    if constexpr (detail::kIsOptional<T>) {
      if (is_null(column)) return std::nullopt;
      return get<typename T::value_type>(column);
    } else {
      if (is_null(column)) detail::bad_value(result_, column, "is NULL");
      T value{};
      if constexpr (std::is_same_v<decltype(detail::read(text(column), value)), void>) {
        detail::read(text(column), value);
      } else if (!detail::read(text(column), value)) {
        detail::bad_value(result_, column, "does not parse");
      }
      return value;
    }
  }

  template <class T>
  T get(std::string_view column) const {
    return get<T>(index_of(column));
  }

  bool is_null(int column) const { return PQgetisnull(result_, index_, check(column)) != 0; }
  bool is_null(std::string_view column) const { return is_null(index_of(column)); }

 private:
  int check(int column) const;
  int index_of(std::string_view column) const;
  std::string_view text(int column) const {
    return {PQgetvalue(result_, index_, column), static_cast<std::size_t>(PQgetlength(result_, index_, column))};
  }

  const PGresult* result_;
  int index_;
};

class ResultSet {
 public:
  ResultSet() = default;
  explicit ResultSet(PGresult* owned) : result_(owned), size_(PQntuples(owned)) {}

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Row operator[](int row) const { return {result_.get(), row}; }
  // The only row; throws `row_count` unless there is exactly one.
  Row one() const;
  // The number of rows that INSERT, UPDATE or DELETE changed, or that SELECT returned. May be zero.
  std::int64_t affected() const;
  // PostgreSQL's command tag: "UPDATE 3", "COMMIT", "ROLLBACK".
  std::string_view command() const { return result_ ? PQcmdStatus(result_.get()) : ""; }

  class Iterator {
   public:
    Iterator(const PGresult* result, int row) : result_(result), row_(row) {}
    Row operator*() const { return {result_, row_}; }
    Iterator& operator++() {
      ++row_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const PGresult* result_;
    int row_;
  };
  Iterator begin() const { return {result_.get(), 0}; }
  Iterator end() const { return {result_.get(), size_}; }

 private:
  std::unique_ptr<PGresult, detail::ClearResult> result_;
  int size_ = 0;
};

}  // namespace fencepost::pg
