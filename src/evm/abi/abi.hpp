// The part of Solidity's contract ABI that Fencepost needs: selectors, words, and bytes or strings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "evm/transaction.hpp"

namespace fencepost::evm {

using Selector = std::array<std::uint8_t, 4>;

// The first four bytes of a call or of an error: selector("transfer(address,uint256)"). Requires: the signature is in
// canonical form, without spaces and names, with `uint256` instead of `uint`.
Selector selector(std::string_view signature);

// Writes arguments in order:
//   const Bytes data = AbiWriter(selector("transfer(address,uint256)")).address(to).uint256(amount).take();
class AbiWriter {
 public:
  AbiWriter() = default;
  explicit AbiWriter(const Selector& front) : front_(front.begin(), front.end()) {}

  AbiWriter& uint256(const Uint256& value);
  AbiWriter& address(const Address& value);
  AbiWriter& boolean(bool value);
  AbiWriter& bytes32(const Hash32& value);
  AbiWriter& bytes(std::span<const std::uint8_t> value);
  AbiWriter& string(std::string_view value);

  // Returns the selector if there is one, the words, then the dynamic values.
  Bytes take() const;

 private:
  struct Argument {
    Hash32 word{};  // the value itself when `dynamic` is false
    bool dynamic = false;
    Bytes value;
  };
  Bytes front_;
  std::vector<Argument> arguments_;
};

// Reads arguments by position, starting at 0. A view: the data, which starts after the selector, must outlive the
// reader and the spans it returns. Safe for hostile data: never reads outside it and never allocates. All errors are
// kInvalid `bad_abi`: a missing argument, an offset or length past the end, nonzero padding bits.
class AbiReader {
 public:
  explicit AbiReader(std::span<const std::uint8_t> data) : data_(data) {}

  Result<Hash32> bytes32(std::size_t place) const;
  Result<Uint256> uint256(std::size_t place) const;
  Result<Address> address(std::size_t place) const;
  Result<bool> boolean(std::size_t place) const;
  // Accepts a value without its padding: some contracts assemble their data by hand and leave the padding out.
  Result<std::span<const std::uint8_t>> bytes(std::size_t place) const;
  Result<std::string_view> string(std::size_t place) const;

 private:
  Result<Hash32> word_at(std::size_t offset) const;
  // Reads an offset or a length; an error when it is larger than the data.
  Result<std::size_t> size_at(std::size_t offset) const;

  std::span<const std::uint8_t> data_;
};

}  // namespace fencepost::evm
