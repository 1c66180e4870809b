// Recursive Length Prefix, Ethereum's serialisation: byte strings, and lists of them. Strict: each value has exactly
// one encoding, and the reader accepts no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "base/hex.hpp"
#include "base/uint256.hpp"

namespace fencepost::evm::rlp {

// Writing: items are appended to a payload, which `list` then wraps.
//   Bytes payload;
//   append_integer(payload, nonce);
//   append_bytes(payload, to);
//   const Bytes encoded = list(payload);
void append_bytes(Bytes& out, std::span<const std::uint8_t> bytes);
// Big endian without leading zeros; zero is the empty string.
void append_integer(Bytes& out, std::uint64_t value);
void append_integer(Bytes& out, const Uint256& value);
void append_list(Bytes& out, std::span<const std::uint8_t> payload);
Bytes list(std::span<const std::uint8_t> payload);

inline constexpr std::size_t kMaxDepth = 16;

// Checks that the input is exactly one item, canonical at every level, with lists nested no deeper than `max_depth`.
// All errors of this file are kInvalid `bad_rlp`.
Result<void> check(std::span<const std::uint8_t> input, std::size_t max_depth = kMaxDepth);

// Reads the items of a sequence, one after the other. A view: the input must outlive the reader and the spans it
// returns. An error leaves the reader at its position.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> input) : rest_(input) {}

  bool at_end() const { return rest_.empty(); }
  bool next_is_list() const { return !rest_.empty() && rest_.front() >= 0xc0; }

  // A byte string; an error when the next item is a list or there is none.
  Result<std::span<const std::uint8_t>> bytes();
  // A number; an error also for leading zeros and for a number that is too large.
  Result<std::uint64_t> uint64();
  Result<Uint256> uint256();
  // A reader of the next item, which must be a list; an error when it is a byte string or there is none.
  Result<Reader> list();
  // An error when there are more items.
  Result<void> end() const;

 private:
  struct Item {
    bool is_list;
    std::span<const std::uint8_t> payload;
    std::size_t size;  // including the prefix
  };
  Result<Item> peek() const;
  Result<std::span<const std::uint8_t>> integer_bytes(std::size_t max_bytes);

  std::span<const std::uint8_t> rest_;
};

}  // namespace fencepost::evm::rlp
