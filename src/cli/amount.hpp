// Amounts of ether as users type and read them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/uint256.hpp"

namespace fencepost::cli {

// "1000" and "0x3e8" are wei; "1.5ether", "30gwei" and "7wei" name their unit. kInvalid `bad_amount` for anything else,
// for a fraction of a wei and for more than 256 bits.
Result<Uint256> parse_amount(std::string_view text);

// "1.5 ether", or "1000 wei" for less than a millionth of an ether.
std::string amount_text(const Uint256& wei);

}  // namespace fencepost::cli
