#include "evm/abi/abi.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "evm/keccak.hpp"

namespace fencepost::evm {
namespace {

constexpr std::size_t kWord = 32;

Error bad_abi(std::string reason) {
  return invalid("bad_abi", std::move(reason));
}

void append(Bytes& out, std::span<const std::uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::size_t padded(std::size_t size) {
  return (size + kWord - 1) / kWord * kWord;
}

bool all_zero(std::span<const std::uint8_t> bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t b) { return b == 0; });
}

}  // namespace

Selector selector(std::string_view signature) {
  const auto hash = keccak256(signature);
  return {hash[0], hash[1], hash[2], hash[3]};
}

AbiWriter& AbiWriter::uint256(const Uint256& value) {
  arguments_.push_back({.word = to_big_endian(value)});
  return *this;
}

AbiWriter& AbiWriter::address(const Address& value) {
  Argument argument;
  std::ranges::copy_backward(value, argument.word.end());
  arguments_.push_back(std::move(argument));
  return *this;
}

AbiWriter& AbiWriter::boolean(bool value) {
  return uint256(value ? 1 : 0);
}

AbiWriter& AbiWriter::bytes32(const Hash32& value) {
  arguments_.push_back({.word = value});
  return *this;
}

AbiWriter& AbiWriter::bytes(std::span<const std::uint8_t> value) {
  arguments_.push_back({.dynamic = true, .value = Bytes(value.begin(), value.end())});
  return *this;
}

AbiWriter& AbiWriter::string(std::string_view value) {
  return bytes({reinterpret_cast<const std::uint8_t*>(value.data()), value.size()});
}

Bytes AbiWriter::take() const {
  Bytes out = front_;
  std::size_t tail = arguments_.size() * kWord;
  for (const auto& argument : arguments_) {
    append(out, argument.dynamic ? to_big_endian(Uint256(tail)) : argument.word);
    if (argument.dynamic) tail += kWord + padded(argument.value.size());
  }
  for (const auto& argument : arguments_) {
    if (!argument.dynamic) continue;
    append(out, to_big_endian(Uint256(argument.value.size())));
    append(out, argument.value);
    out.resize(out.size() + padded(argument.value.size()) - argument.value.size());
  }
  return out;
}

Result<Hash32> AbiReader::word_at(std::size_t offset) const {
  if (offset > data_.size() || data_.size() - offset < kWord) {
    return fail(bad_abi(fmt::format("a word at byte {} is past the end ({} bytes)", offset, data_.size())));
  }
  Hash32 word;
  std::ranges::copy(data_.subspan(offset, kWord), word.begin());
  return word;
}

Result<std::size_t> AbiReader::size_at(std::size_t offset) const {
  const auto word = word_at(offset);
  if (!word) return fail(word.error());
  const auto value = from_big_endian(*word);
  if (value > data_.size()) {
    return fail(
        bad_abi(fmt::format("an offset or length of {} is past the end ({} bytes)", to_quantity(value), data_.size())));
  }
  return static_cast<std::size_t>(value);
}

Result<Hash32> AbiReader::bytes32(std::size_t place) const {
  if (place >= data_.size() / kWord) return fail(bad_abi(fmt::format("there is no argument {}", place)));
  return word_at(place * kWord);
}

Result<Uint256> AbiReader::uint256(std::size_t place) const {
  const auto word = bytes32(place);
  if (!word) return fail(word.error());
  return from_big_endian(*word);
}

Result<Address> AbiReader::address(std::size_t place) const {
  const auto word = bytes32(place);
  if (!word) return fail(word.error());
  if (!all_zero(std::span(*word).first<12>())) return fail(bad_abi("an address has more than 20 bytes"));
  Address address;
  std::ranges::copy(std::span(*word).last<20>(), address.begin());
  return address;
}

Result<bool> AbiReader::boolean(std::size_t place) const {
  const auto value = uint256(place);
  if (!value) return fail(value.error());
  if (*value > 1) return fail(bad_abi("a boolean is neither 0 nor 1"));
  return *value == 1;
}

Result<std::span<const std::uint8_t>> AbiReader::bytes(std::size_t place) const {
  if (place >= data_.size() / kWord) return fail(bad_abi(fmt::format("there is no argument {}", place)));
  const auto offset = size_at(place * kWord);
  if (!offset) return fail(offset.error());
  const auto length = size_at(*offset);
  if (!length) return fail(length.error());
  const auto rest = data_.subspan(*offset + kWord);
  if (*length > rest.size()) {
    return fail(
        bad_abi(fmt::format("a value states a length of {} bytes, but only {} are left", *length, rest.size())));
  }
  return rest.first(*length);
}

Result<std::string_view> AbiReader::string(std::size_t place) const {
  const auto value = bytes(place);
  if (!value) return fail(value.error());
  return std::string_view(reinterpret_cast<const char*>(value->data()), value->size());
}

}  // namespace fencepost::evm
