// Types of Solidity's contract ABI, and functions with their parameters, read from text:
//
//   parse_abi_types("address,(uint256,bytes)[]")
//   parse_signature("transfer(address,uint256)")                  exactly the text that a selector is the hash of
//   parse_function("transfer(address to,uint256 amount)")         with parameter names
//
// Text may be hostile: every size is bounded. All errors are kInvalid `bad_abi`, with the position.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "evm/abi/abi.hpp"

namespace fencepost::evm {

inline constexpr std::size_t kAbiMaxText = 4096;          // bytes of a signature or a list of types
inline constexpr std::size_t kAbiMaxDepth = 8;            // arrays and tuples inside each other
inline constexpr std::size_t kAbiMaxTypes = 256;          // of one function, with those inside of others
inline constexpr std::size_t kAbiMaxHead = 32 * 1 << 20;  // bytes of a value without its dynamic parts
inline constexpr std::size_t kAbiMaxName = 128;

enum class AbiKind { kUint, kInt, kAddress, kBool, kFixedBytes, kFunction, kBytes, kString, kArray, kTuple };

struct AbiType {
  AbiKind kind = AbiKind::kUint;
  std::size_t size = 0;        // bits of an integer, bytes of bytesN, length of T[N]
  bool any_length = false;     // T[] instead of T[N]
  std::vector<AbiType> parts;  // the element of an array, the components of a tuple
  bool dynamic = false;        // its place holds an offset to the value
  std::size_t head = 32;       // bytes at its place
  std::size_t depth = 0;       // of arrays and tuples inside each other

  // The canonical form: "(address,uint256)[2][]".
  std::string text() const;

  friend bool operator==(const AbiType&, const AbiType&) = default;
};

struct AbiParameter {
  std::string name;  // may be empty
  AbiType type;
  friend bool operator==(const AbiParameter&, const AbiParameter&) = default;
};

struct AbiFunction {
  std::string name;
  std::vector<AbiParameter> inputs;

  // "transfer(address,uint256)"
  std::string signature() const;
  // "transfer(address to,uint256 amount)"; parse_function reads it back.
  std::string declaration() const;

  friend bool operator==(const AbiFunction&, const AbiFunction&) = default;
};

// A list of types separated by commas, without spaces; empty text is an empty list. Only canonical types: `uint256`,
// not `uint`. No empty tuples and no arrays of length 0: a long array of values without bytes would be free to claim.
Result<std::vector<AbiType>> parse_abi_types(std::string_view text);

// Only the canonical form: any other text has another selector.
Result<AbiFunction> parse_signature(std::string_view text);

// One space and a name may follow the type of a parameter, but not inside a tuple.
Result<AbiFunction> parse_function(std::string_view text);

// Builds a type from parts that are read elsewhere; the same bounds.
Result<AbiType> make_tuple(std::vector<AbiType> components);
Result<AbiType> make_array(AbiType element, std::optional<std::size_t> length);

// Whether the text is an identifier of Solidity, at most kAbiMaxName long.
bool is_identifier(std::string_view text);

}  // namespace fencepost::evm
