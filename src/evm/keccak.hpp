// Keccak-256, Ethereum's hash: SHA-3 with the padding it had before it became a standard, so not OpenSSL's SHA3-256.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "evm/transaction.hpp"

namespace fencepost::evm {

// Any thread may call.
Hash32 keccak256(std::span<const std::uint8_t> data);
Hash32 keccak256(std::string_view text);

}  // namespace fencepost::evm
