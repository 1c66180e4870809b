// Solidity's contract ABI, as much of it as is needed: selectors, words, and bytes or strings.
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

// The first four bytes of a call or of an error: selector("transfer(address,uint256)"). The signature is taken as it
// is: no spaces, no names, `uint256` and not `uint`.
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

  // The selector if there is one, the words, then the dynamic values.
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

// Reads arguments by their place, the first being 0. A view: the data, which starts after the selector, must outlive
// it and what it returns. Whatever the data says, nothing outside it is read and nothing is allocated. All errors are
// kInvalid `bad_abi`: an argument that is not there, an offset or a length past the end, bits where zeros are due.
class AbiReader {
 public:
  explicit AbiReader(std::span<const std::uint8_t> data) : data_(data) {}

  Result<Hash32> bytes32(std::size_t place) const;
  Result<Uint256> uint256(std::size_t place) const;
  Result<Address> address(std::size_t place) const;
  Result<bool> boolean(std::size_t place) const;
  // The padding behind the value may be missing, as it is in what some contracts assemble by hand.
  Result<std::span<const std::uint8_t>> bytes(std::size_t place) const;
  Result<std::string_view> string(std::size_t place) const;

 private:
  Result<Hash32> word_at(std::size_t offset) const;
  // A word that says how far or how long, no larger than the data.
  Result<std::size_t> size_at(std::size_t offset) const;

  std::span<const std::uint8_t> data_;
};

}  // namespace fencepost::evm
