#include "pg/result.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "base/error.hpp"
#include "pg/time.hpp"

namespace fencepost::pg {
namespace detail {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

void bad_value(const PGresult* result, int column, std::string_view why) {
  const char* name = PQfname(result, column);
  throw Exception(internal("bad_column", fmt::format("column {} '{}' {}", column, name == nullptr ? "?" : name, why)));
}

void read(std::string_view text, std::string_view& out) {
  out = text;
}

void read(std::string_view text, std::string& out) {
  out = text;
}

bool read(std::string_view text, bool& out) {
  out = text == "t";
  return out || text == "f";
}

bool read(std::string_view text, Uuid& out) {
  auto parsed = Uuid::parse(text);
  if (parsed) out = *parsed;
  return parsed.has_value();
}

bool read(std::string_view text, TimePoint& out) {
  const auto parsed = parse_timestamp(text);
  if (parsed) out = *parsed;
  return parsed.has_value();
}

// bytea_output = hex: "\x" and two lowercase digits per byte.
bool read(std::string_view text, Bytes& out) {
  if (!text.starts_with("\\x") || text.size() % 2 != 0) return false;
  text.remove_prefix(2);
  out.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]);
    const int low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return false;
    out.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return true;
}

bool read(std::string_view text, boost::json::value& out) {
  boost::system::error_code ec;
  out = boost::json::parse({text.data(), text.size()}, ec);
  return !ec;
}

}  // namespace detail

int Row::check(int column) const {
  if (column < 0 || column >= PQnfields(result_)) detail::bad_value(result_, column, "is not in the result");
  return column;
}

int Row::index_of(std::string_view column) const {
  const int fields = PQnfields(result_);
  for (int i = 0; i < fields; ++i) {
    if (column == PQfname(result_, i)) return i;
  }
  throw Exception(internal("bad_column", fmt::format("the result has no column '{}'", column)));
}

Row ResultSet::one() const {
  if (size_ != 1) throw Exception(internal("row_count", fmt::format("expected one row, got {}", size_)));
  return (*this)[0];
}

std::int64_t ResultSet::affected() const {
  if (!result_) return 0;
  const std::string_view text = PQcmdTuples(result_.get());
  std::int64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

}  // namespace fencepost::pg
