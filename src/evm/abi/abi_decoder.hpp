// Decodes ABI-encoded bytes by types, into JSON:
//
//   address, bytes, bytesN, function   lowercase hex with 0x
//   uintN, intN                        decimal digits in a string
//   bool                               true or false
//   string                             text; hex with 0x if it is not UTF-8 or has a NUL, which PostgreSQL cannot store
//   arrays and tuples                  arrays
//
// Only the one layout that encoders produce is accepted: each dynamic value follows directly after the one before it,
// padding is zero, and every byte of the data belongs to a value. So data of another function rarely decodes by
// accident, and the result is never larger than a constant multiple of the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <boost/json/array.hpp>

#include "base/error.hpp"
#include "evm/abi/abi_type.hpp"

namespace fencepost::evm {

struct AbiLimits {
  std::size_t max_items = 10'000;      // values, with those inside of others
  std::size_t max_bytes = 256 * 1024;  // of text in the result
};

// One JSON value per type. Errors: kInvalid `bad_abi`.
Result<boost::json::array> decode_abi(std::span<const AbiType> types, std::span<const std::uint8_t> data,
                                      const AbiLimits& limits = {});

// The types of a function's parameters.
std::vector<AbiType> input_types(const AbiFunction& function);

}  // namespace fencepost::evm
