#include "evm/rlp.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fencepost::evm::rlp {
namespace {

constexpr std::uint8_t kString = 0x80;
constexpr std::uint8_t kList = 0xc0;
constexpr std::size_t kShortMax = 55;  // longer payloads have extra length bytes

Error bad(std::string reason) {
  return invalid("bad_rlp", std::move(reason));
}

std::span<const std::uint8_t> without_leading_zeros(std::span<const std::uint8_t> bytes) {
  const auto first = std::ranges::find_if(bytes, [](std::uint8_t b) { return b != 0; });
  return {first, bytes.end()};
}

std::array<std::uint8_t, 8> big_endian(std::uint64_t value) {
  std::array<std::uint8_t, 8> out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(value >> (56 - 8 * i));
  return out;
}

void append_raw(Bytes& out, std::span<const std::uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_prefix(Bytes& out, std::uint8_t kind, std::size_t size) {
  if (size <= kShortMax) {
    out.push_back(static_cast<std::uint8_t>(kind + size));
    return;
  }
  const auto all = big_endian(size);
  const auto length = without_leading_zeros(all);
  out.push_back(static_cast<std::uint8_t>(kind + kShortMax + length.size()));
  append_raw(out, length);
}

struct Extent {
  std::size_t prefix;
  std::size_t payload;
};

// The size of an item by its prefix, which must be canonical. Does not check that the input has that many bytes.
Result<Extent> read_extent(std::span<const std::uint8_t> input, std::uint8_t kind) {
  const std::size_t code = input.front() - kind;
  if (code <= kShortMax) return Extent{1, code};
  const std::size_t length_bytes = code - kShortMax;
  if (input.size() - 1 < length_bytes) return fail(bad("the length of an item is cut off"));
  const auto length = input.subspan(1, length_bytes);
  if (length.front() == 0) return fail(bad("the length of an item has a leading zero"));
  std::uint64_t size = 0;
  for (const auto byte : length) size = size << 8 | byte;
  if (size <= kShortMax) return fail(bad(fmt::format("a length of {} must be in the prefix itself", size)));
  return Extent{1 + length_bytes, size};
}

Result<void> check_items(Reader reader, std::size_t depth_left) {
  while (!reader.at_end()) {
    if (!reader.next_is_list()) {
      if (const auto bytes = reader.bytes(); !bytes) return fail(bytes.error());
      continue;
    }
    const auto inner = reader.list();
    if (!inner) return fail(inner.error());
    if (depth_left == 0) return fail(bad("lists are nested too deep"));
    if (auto checked = check_items(*inner, depth_left - 1); !checked) return checked;
  }
  return {};
}

}  // namespace

void append_bytes(Bytes& out, std::span<const std::uint8_t> bytes) {
  const bool itself = bytes.size() == 1 && bytes.front() < kString;
  if (!itself) append_prefix(out, kString, bytes.size());
  append_raw(out, bytes);
}

void append_integer(Bytes& out, std::uint64_t value) {
  const auto all = big_endian(value);
  append_bytes(out, without_leading_zeros(all));
}

void append_integer(Bytes& out, const Uint256& value) {
  const auto all = to_big_endian(value);
  append_bytes(out, without_leading_zeros(all));
}

void append_list(Bytes& out, std::span<const std::uint8_t> payload) {
  append_prefix(out, kList, payload.size());
  append_raw(out, payload);
}

Bytes list(std::span<const std::uint8_t> payload) {
  Bytes out;
  out.reserve(payload.size() + 9);
  append_list(out, payload);
  return out;
}

Result<void> check(std::span<const std::uint8_t> input, std::size_t max_depth) {
  Reader reader(input);
  if (!reader.next_is_list()) {
    if (const auto bytes = reader.bytes(); !bytes) return fail(bytes.error());
    return reader.end();
  }
  const auto inner = reader.list();
  if (!inner) return fail(inner.error());
  if (auto end = reader.end(); !end) return end;
  if (max_depth == 0) return fail(bad("lists are nested too deep"));
  return check_items(*inner, max_depth - 1);
}

Result<Reader::Item> Reader::peek() const {
  if (rest_.empty()) return fail(bad("an item is missing"));
  const auto first = rest_.front();
  if (first < kString) return Item{false, rest_.first(1), 1};
  const bool is_list = first >= kList;
  const auto extent = read_extent(rest_, is_list ? kList : kString);
  if (!extent) return fail(extent.error());
  const auto after_prefix = rest_.subspan(extent->prefix);
  if (after_prefix.size() < extent->payload) {
    return fail(bad(fmt::format("an item of {} bytes is cut off after {}", extent->payload, after_prefix.size())));
  }
  const auto payload = after_prefix.first(extent->payload);
  if (!is_list && payload.size() == 1 && payload.front() < kString) {
    return fail(bad("a byte under 0x80 must not have a prefix"));
  }
  return Item{is_list, payload, extent->prefix + extent->payload};
}

Result<std::span<const std::uint8_t>> Reader::bytes() {
  const auto item = peek();
  if (!item) return fail(item.error());
  if (item->is_list) return fail(bad("expected a byte string, got a list"));
  rest_ = rest_.subspan(item->size);
  return item->payload;
}

Result<Reader> Reader::list() {
  const auto item = peek();
  if (!item) return fail(item.error());
  if (!item->is_list) return fail(bad("expected a list, got a byte string"));
  rest_ = rest_.subspan(item->size);
  return Reader(item->payload);
}

Result<std::span<const std::uint8_t>> Reader::integer_bytes(std::size_t max_bytes) {
  Reader ahead = *this;
  const auto digits = ahead.bytes();
  if (!digits) return fail(digits.error());
  if (!digits->empty() && digits->front() == 0) return fail(bad("a number has a leading zero"));
  if (digits->size() > max_bytes) {
    return fail(bad(fmt::format("a number has {} bytes; expected at most {}", digits->size(), max_bytes)));
  }
  *this = ahead;
  return *digits;
}

Result<std::uint64_t> Reader::uint64() {
  const auto digits = integer_bytes(8);
  if (!digits) return fail(digits.error());
  std::uint64_t value = 0;
  for (const auto byte : *digits) value = value << 8 | byte;
  return value;
}

Result<Uint256> Reader::uint256() {
  const auto digits = integer_bytes(32);
  if (!digits) return fail(digits.error());
  std::array<std::uint8_t, 32> padded{};
  std::ranges::copy_backward(*digits, padded.end());
  return from_big_endian(padded);
}

Result<void> Reader::end() const {
  if (rest_.empty()) return {};
  return fail(bad(fmt::format("expected the end, got {} more bytes", rest_.size())));
}

}  // namespace fencepost::evm::rlp
