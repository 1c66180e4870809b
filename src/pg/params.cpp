#include "pg/params.hpp"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include <boost/endian/conversion.hpp>

#include "base/error.hpp"
#include "pg/time.hpp"

namespace fencepost::pg {
namespace {

constexpr std::uint32_t kByteaType = 17;

void refuse_nul(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    throw Exception(invalid("nul_in_text", "text must not contain a NUL character"));
  }
}

}  // namespace

Params& Params::add(std::nullptr_t) {
  entries_.push_back({buffer_.size(), 0, 0, false, true});
  return *this;
}

Params& Params::add(bool value) {
  return add_text(value ? "t" : "f");
}

Params& Params::add(std::int64_t value) {
  return add_text(fmt::format_int(value).c_str());
}

Params& Params::add(std::uint64_t value) {
  return add_text(fmt::format_int(value).c_str());
}

Params& Params::add(double value) {
  return add_text(fmt::format("{}", value));
}

Params& Params::add(std::string_view value) {
  refuse_nul(value);
  return add_text(value);
}

Params& Params::add(const Uuid& value) {
  return add_text(value.to_string());
}

Params& Params::add(TimePoint value) {
  return add_text(format_timestamp(value));
}

Params& Params::add(const Bytes& value) {
  entries_.push_back({buffer_.size(), value.size(), kByteaType, true, false});
  buffer_.append(reinterpret_cast<const char*>(value.data()), value.size());
  return *this;
}

Params& Params::add_text(std::string_view text) {
  entries_.push_back({buffer_.size(), text.size(), 0, false, false});
  buffer_.append(text);
  buffer_.push_back('\0');
  return *this;
}

// The binary form of a one-dimensional array: dimensions, null flag, element type, length, lower bound, elements.
std::size_t Params::begin_array(std::uint32_t element_type, std::size_t count) {
  const auto start = buffer_.size();
  put_int32(count == 0 ? 0 : 1);
  put_int32(0);
  put_int32(std::bit_cast<std::int32_t>(element_type));
  if (count != 0) {
    put_int32(static_cast<std::int32_t>(count));
    put_int32(1);
  }
  return start;
}

Params& Params::end_array(std::size_t start, std::uint32_t array_type, bool has_null) {
  if (has_null) buffer_[start + 7] = 1;
  entries_.push_back({start, buffer_.size() - start, array_type, true, false});
  return *this;
}

void Params::put_int32(std::int32_t value) {
  boost::endian::native_to_big_inplace(value);
  buffer_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void Params::put_int64(std::int64_t value) {
  boost::endian::native_to_big_inplace(value);
  buffer_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void Params::put_element(bool value) {
  put_int32(1);
  buffer_.push_back(value ? 1 : 0);
}

void Params::put_element(std::int32_t value) {
  put_int32(sizeof value);
  put_int32(value);
}

void Params::put_element(std::int64_t value) {
  put_int32(sizeof value);
  put_int64(value);
}

void Params::put_element(std::string_view value) {
  refuse_nul(value);
  put_int32(static_cast<std::int32_t>(value.size()));
  buffer_.append(value);
}

void Params::put_element(const Uuid& value) {
  const auto bytes = value.bytes();
  put_int32(static_cast<std::int32_t>(bytes.size()));
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void Params::put_element(TimePoint value) {
  put_int32(sizeof(std::int64_t));
  put_int64((value - kPostgresEpoch).count());
}

void Params::put_element(const Bytes& value) {
  put_int32(static_cast<std::int32_t>(value.size()));
  buffer_.append(reinterpret_cast<const char*>(value.data()), value.size());
}

void Params::to_wire(Wire& wire) const {
  wire.values.clear();
  wire.lengths.clear();
  wire.formats.clear();
  wire.types.clear();
  for (const auto& entry : entries_) {
    wire.values.push_back(entry.null ? nullptr : buffer_.data() + entry.offset);
    wire.lengths.push_back(static_cast<int>(entry.length));
    wire.formats.push_back(entry.binary ? 1 : 0);
    wire.types.push_back(entry.type);
  }
}

}  // namespace fencepost::pg
