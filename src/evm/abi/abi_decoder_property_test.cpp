// Tests the decoder with random types and values, and with random changes of their encoding.
#include <array>
#include <limits>

#include <gtest/gtest.h>

#include <boost/json/array.hpp>

#include "base/hex.hpp"
#include "base/random.hpp"
#include "base/uint256.hpp"
#include "evm/abi/abi_decoder.hpp"

namespace fencepost::evm {
namespace {

namespace json = boost::json;

// Encodes JSON as the decoder returns it, to compare with what was decoded.
class Encoder {
 public:
  static Bytes sequence(std::span<const AbiType* const> types, const json::array& values) {
    Bytes places;
    Bytes behind;
    std::size_t room = 0;
    for (const auto* type : types) room += type->head;
    for (std::size_t i = 0; i < types.size(); ++i) {
      const auto encoded = value(*types[i], values[i]);
      if (!types[i]->dynamic) {
        append(places, encoded);
        continue;
      }
      append(places, to_big_endian(Uint256(room + behind.size())));
      append(behind, encoded);
    }
    append(places, behind);
    return places;
  }

 private:
  static void append(Bytes& out, std::span<const std::uint8_t> more) {
    out.insert(out.end(), more.begin(), more.end());
  }
  static Bytes word(const Uint256& number) {
    const auto bytes = to_big_endian(number);
    return {bytes.begin(), bytes.end()};
  }
  static Bytes value(const AbiType& type, const json::value& in) {
    switch (type.kind) {
      case AbiKind::kBool:
        return word(in.get_bool() ? 1 : 0);
      case AbiKind::kUint:
        return word(parse_decimal(in.get_string()).value());
      case AbiKind::kInt: {
        const std::string_view text = in.get_string();
        if (!text.starts_with('-')) return word(parse_decimal(text).value());
        return word(std::numeric_limits<Uint256>::max() - parse_decimal(text.substr(1)).value() + 1);
      }
      case AbiKind::kAddress: {
        auto bytes = from_hex0x(in.get_string()).value();
        bytes.insert(bytes.begin(), 12, 0);
        return bytes;
      }
      case AbiKind::kFixedBytes:
      case AbiKind::kFunction: {
        auto bytes = from_hex0x(in.get_string()).value();
        bytes.resize(32);
        return bytes;
      }
      case AbiKind::kString:
      case AbiKind::kBytes:
        return with_length(raw(type, in.get_string()));
      case AbiKind::kArray: {
        const std::vector<const AbiType*> types(in.get_array().size(), &type.parts[0]);
        Bytes out = type.any_length ? word(types.size()) : Bytes();
        append(out, sequence(types, in.get_array()));
        return out;
      }
      case AbiKind::kTuple:
        break;
    }
    std::vector<const AbiType*> types;
    types.reserve(type.parts.size());
    for (const auto& part : type.parts) types.push_back(&part);
    return sequence(types, in.get_array());
  }
  // The tests' strings never begin with 0x, so a string that does is one that was not UTF-8.
  static Bytes raw(const AbiType& type, std::string_view text) {
    if (type.kind == AbiKind::kBytes || text.starts_with("0x")) return from_hex0x(text).value();
    return {text.begin(), text.end()};
  }
  static Bytes with_length(const Bytes& value) {
    Bytes out = word(value.size());
    append(out, value);
    out.resize((out.size() + 31) / 32 * 32);
    return out;
  }
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) { return random_.next() % bound; }

  AbiType type(std::size_t depth) {
    const auto kind = below(depth < 3 ? 12 : 8);
    if (kind >= 10) {
      std::vector<AbiType> parts(1 + below(3));
      for (auto& part : parts) part = type(depth + 1);
      return make_tuple(std::move(parts)).value();
    }
    if (kind >= 8) {
      auto length = below(2) == 0 ? std::nullopt : std::optional<std::size_t>(1 + below(3));
      return make_array(type(depth + 1), length).value();
    }
    static constexpr std::string_view kNames[] = {"address", "bool", "bytes", "string"};
    const auto n = std::to_string(1 + below(32));
    const auto bits = std::to_string(8 * (1 + below(32)));
    const auto text = kind < 4    ? std::string(kNames[kind])
                      : kind == 4 ? "bytes" + n
                      : kind == 5 ? "int" + bits
                                  : "uint" + bits;
    return parse_abi_types(text).value().front();
  }

  json::value value(const AbiType& type) {
    if (type.kind == AbiKind::kTuple) {
      json::array out;
      for (const auto& part : type.parts) out.push_back(value(part));
      return out;
    }
    if (type.kind == AbiKind::kArray) {
      json::array out;
      for (auto count = type.any_length ? below(4) : type.size; count > 0; --count) out.push_back(value(type.parts[0]));
      return out;
    }
    if (type.kind == AbiKind::kBool) return json::value(below(2) == 1);
    if (type.kind == AbiKind::kUint) return json::value(to_decimal(number(type.size)));
    if (type.kind == AbiKind::kInt) {
      const auto size = number(type.size - 1);
      return json::value(size != 0 && below(2) == 1 ? "-" + to_decimal(size) : to_decimal(size));
    }
    if (type.kind == AbiKind::kString) return json::value(std::string(below(40), 'q'));
    Bytes bytes(type.kind == AbiKind::kAddress ? 20 : type.kind == AbiKind::kBytes ? below(70) : type.size);
    random_.fill(std::as_writable_bytes(std::span(bytes)));
    return json::value(to_hex0x(bytes));
  }

 private:
  Uint256 number(std::size_t bits) {
    std::array<std::uint8_t, 32> bytes;
    random_.fill(std::as_writable_bytes(std::span(bytes)));
    return bits == 0 ? Uint256(0) : from_big_endian(bytes) >> static_cast<int>(256 - bits);
  }

  SeededRandom random_;
};

struct Sample {
  std::vector<AbiType> types;
  json::array values;
  Bytes data;
};

Bytes encode_all(const std::vector<AbiType>& types, const json::array& values) {
  std::vector<const AbiType*> pointers;
  pointers.reserve(types.size());
  for (const auto& type : types) pointers.push_back(&type);
  return Encoder::sequence(pointers, values);
}

Sample make_sample(Generator& any) {
  Sample out;
  out.types.resize(any.below(4));
  for (auto& type : out.types) type = any.type(0);
  for (const auto& type : out.types) out.values.push_back(any.value(type));
  out.data = encode_all(out.types, out.values);
  return out;
}

TEST(abi_decoder_property, decodes_random_values_of_random_types) {
  Generator any(1);
  for (int i = 0; i < 3'000; ++i) {
    const auto sample = make_sample(any);
    const auto decoded = decode_abi(sample.types, sample.data);
    ASSERT_TRUE(decoded) << i << ": " << decoded.error().message;
    ASSERT_EQ(*decoded, sample.values) << i;
  }
}

// Whatever decodes is the one encoding of its values: nothing in the data was overlooked.
TEST(abi_decoder_property, changed_data_is_refused_or_is_the_encoding_of_other_values) {
  Generator any(2);
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto [types, values, data] = make_sample(any);
    if (data.empty()) continue;
    for (auto changes = 1 + any.below(3); changes > 0; --changes) {
      auto& byte = data[any.below(data.size())];
      byte = static_cast<std::uint8_t>(any.below(2) == 0 ? byte ^ (1U << any.below(8)) : any.below(256));
    }
    if (any.below(10) == 0) data.resize(any.below(data.size() + 1));
    const auto decoded = decode_abi(types, data);
    ++(decoded ? accepted : refused);
    if (decoded) ASSERT_EQ(to_hex(encode_all(types, *decoded)), to_hex(data)) << i;
  }
  EXPECT_GT(accepted, 1'000);
  EXPECT_GT(refused, 1'000);
}

}  // namespace
}  // namespace fencepost::evm
