// Keccak-256, Ethereum's hash. Not OpenSSL's SHA3-256: Keccak-256 has the padding from before SHA-3 was standardised.
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
