#include "evm/abi/abi_decoder.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <boost/json/value.hpp>

#include "base/hex.hpp"
#include "base/text.hpp"
#include "base/uint256.hpp"

namespace fencepost::evm {
namespace {

namespace json = boost::json;
using Span = std::span<const std::uint8_t>;

constexpr std::size_t kSlot = 32;

Error undecodable(std::string reason) {
  return invalid("bad_abi", std::move(reason));
}

std::size_t padding_of(std::size_t size) {
  return (kSlot - size % kSlot) % kSlot;
}

bool zeros(Span bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t b) { return b == 0; });
}

bool fits_unsigned(const Uint256& value, std::size_t bits) {
  return bits == 256 || value < Uint256(1) << bits;
}

// The decimal digits of a two's complement number; empty when it has more than `bits` bits.
std::string signed_text(const Uint256& value, std::size_t bits) {
  const auto limit = Uint256(1) << (bits - 1);
  if (value < Uint256(1) << 255) return value < limit ? to_decimal(value) : std::string();
  const Uint256 magnitude = std::numeric_limits<Uint256>::max() - value + 1;
  return magnitude <= limit ? "-" + to_decimal(magnitude) : std::string();
}

class Decoder {
 public:
  Decoder(Span data, const AbiLimits& limits) : data_(data), limits_(limits) {}

  // The values of a tuple, of an array or of the arguments: first their places, from `begin` on, then the dynamic
  // values in the same order. `type_of(i)` is the type of value i. Moves `end_` behind the last byte that it has read.
  template <class TypeOf>
  Result<json::array> sequence(std::size_t begin, std::size_t count, std::size_t places, TypeOf type_of) {
    if (places > data_.size() - begin) return fail(past_the_end(begin));
    end_ = begin + places;
    json::array out;
    out.reserve(count);
    for (std::size_t i = 0, place = begin; i < count; ++i) {
      const AbiType& type = type_of(i);
      auto value = type.dynamic ? behind(place, begin, type) : static_value(place, type);
      if (!value) return fail(std::move(value).error());
      out.push_back(std::move(*value));
      place += type.head;
    }
    return out;
  }

  bool at_end() const { return end_ == data_.size(); }
  std::size_t end() const { return end_; }

 private:
  Error past_the_end(std::size_t at) const {
    return undecodable(fmt::format("the value at byte {} is longer than the data ({} bytes)", at, data_.size()));
  }
  Result<void> count(std::size_t bytes) {
    if (++items_ > limits_.max_items) {
      return fail(undecodable(fmt::format("more than {} values", limits_.max_items)));
    }
    bytes_ += bytes;
    if (bytes_ > limits_.max_bytes) return fail(undecodable(fmt::format("more than {} bytes", limits_.max_bytes)));
    return {};
  }
  // Requires: the 32 bytes exist.
  Span slot(std::size_t at) const { return data_.subspan(at, kSlot); }
  Uint256 number(std::size_t at) const { return from_big_endian(slot(at).first<kSlot>()); }

  // A dynamic value: its place holds the offset from the beginning of the sequence to where the last value ended.
  Result<json::value> behind(std::size_t place, std::size_t begin, const AbiType& type) {
    if (number(place) != end_ - begin) {
      return fail(
          undecodable(fmt::format("the offset at byte {} does not lead to the end of the previous value", place)));
    }
    if (type.kind == AbiKind::kTuple) return tuple(end_, type);
    if (type.kind == AbiKind::kArray && !type.any_length) return array(end_, type.size, type.parts[0]);
    if (data_.size() - end_ < kSlot) return fail(past_the_end(end_));
    const auto length = number(end_);
    // A byte of the data for each byte of a string, and for each element of an array.
    if (length > data_.size() - end_ - kSlot) return fail(past_the_end(end_));
    const auto begin_value = end_ + kSlot;
    if (type.kind == AbiKind::kArray) return array(begin_value, static_cast<std::size_t>(length), type.parts[0]);
    return bytes(begin_value, static_cast<std::size_t>(length), type.kind == AbiKind::kString);
  }

  Result<json::value> bytes(std::size_t begin, std::size_t length, bool is_string) {
    const auto padding = padding_of(length);
    if (length + padding > data_.size() - begin) return fail(past_the_end(begin));
    if (!zeros(data_.subspan(begin + length, padding))) {
      return fail(undecodable(fmt::format("the padding behind byte {} is not zero", begin + length)));
    }
    end_ = begin + length + padding;
    const auto value = data_.subspan(begin, length);
    if (auto counted = count(2 * length + 2); !counted) return fail(std::move(counted).error());
    const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
    if (is_string && is_utf8(text) && !text.contains('\0')) return json::value(text);
    return json::value(to_hex0x(value));
  }

  Result<json::value> static_value(std::size_t place, const AbiType& type) {
    // These move end_, which belongs to the dynamic values.
    if (type.kind == AbiKind::kTuple || type.kind == AbiKind::kArray) {
      const auto end = end_;
      auto value = type.kind == AbiKind::kTuple ? tuple(place, type) : array(place, type.size, type.parts[0]);
      end_ = end;
      return value;
    }
    auto text = word_value(place, type);
    if (!text) return text;
    if (auto counted = count(text->is_string() ? text->get_string().size() : 5); !counted) {
      return fail(std::move(counted).error());
    }
    return text;
  }

  Result<json::value> word_value(std::size_t place, const AbiType& type) const {
    const auto bytes = slot(place);
    switch (type.kind) {
      case AbiKind::kUint:
        if (const auto value = number(place); fits_unsigned(value, type.size)) return json::value(to_decimal(value));
        break;
      case AbiKind::kInt:
        if (const auto text = signed_text(number(place), type.size); !text.empty()) return json::value(text);
        break;
      case AbiKind::kAddress:
        if (zeros(bytes.first(12))) return json::value(to_hex0x(bytes.last(20)));
        break;
      case AbiKind::kBool:
        if (zeros(bytes.first(31)) && bytes[31] <= 1) return json::value(bytes[31] == 1);
        break;
      case AbiKind::kFixedBytes:
      case AbiKind::kFunction:
        if (zeros(bytes.subspan(type.size))) return json::value(to_hex0x(bytes.first(type.size)));
        break;
      case AbiKind::kBytes:
      case AbiKind::kString:
      case AbiKind::kArray:
      case AbiKind::kTuple:
        std::unreachable();
    }
    return fail(undecodable(fmt::format("the value at byte {} is out of the range of {}", place, type.text())));
  }

  Result<json::value> tuple(std::size_t begin, const AbiType& type) {
    if (auto counted = count(2); !counted) return fail(std::move(counted).error());
    std::size_t places = 0;
    for (const auto& part : type.parts) places += part.head;
    auto values = sequence(begin, type.parts.size(), places, [&](std::size_t i) -> auto& { return type.parts[i]; });
    if (!values) return fail(std::move(values).error());
    return json::value(std::move(*values));
  }
  Result<json::value> array(std::size_t begin, std::size_t length, const AbiType& element) {
    if (auto counted = count(2); !counted) return fail(std::move(counted).error());
    if (length > (data_.size() - begin) / element.head) return fail(past_the_end(begin));
    if (length > limits_.max_items) return fail(undecodable(fmt::format("more than {} values", limits_.max_items)));
    auto values = sequence(begin, length, length * element.head, [&](std::size_t) -> auto& { return element; });
    if (!values) return fail(std::move(values).error());
    return json::value(std::move(*values));
  }

  Span data_;
  const AbiLimits& limits_;
  std::size_t end_ = 0;
  std::size_t items_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

Result<json::array> decode_abi(std::span<const AbiType> types, Span data, const AbiLimits& limits) {
  Decoder in(data, limits);
  std::size_t places = 0;
  for (const auto& type : types) places += type.head;
  auto values = in.sequence(0, types.size(), places, [&](std::size_t i) -> auto& { return types[i]; });
  if (!values) return values;
  if (!in.at_end()) {
    return fail(undecodable(fmt::format("{} bytes are left over", data.size() - in.end())));
  }
  return values;
}

std::vector<AbiType> input_types(const AbiFunction& function) {
  std::vector<AbiType> types;
  types.reserve(function.inputs.size());
  for (const auto& input : function.inputs) types.push_back(input.type);
  return types;
}

}  // namespace fencepost::evm
