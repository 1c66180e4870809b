// Addresses in display form (EIP-55 mixed case) and in stored form (lowercase with 0x).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "evm/transaction.hpp"

namespace fencepost::evm {

// The stored form. Accepts digits that are all lowercase or all uppercase, which carry no checksum, or mixed case with
// a correct checksum. Errors, kInvalid: `bad_address` when the text is not an address, `bad_checksum` when a digit or
// its case is mistyped.
Result<std::string> parse_address(std::string_view text);

// The mixed-case display form of a stored address. Throws Exception "bad_address" when it is not in stored form.
std::string checksum_address(std::string_view lowercase);

// Conversions between the stored form and bytes. Throws Exception "bad_address" when the text is not in stored form.
// Requires: input from outside has passed parse_address.
Address address_bytes(std::string_view lowercase);
std::string address_text(const Address& address);

// The address of the contract that this transaction creates (CREATE, not CREATE2).
Address contract_address(const Address& creator, std::uint64_t nonce);

}  // namespace fencepost::evm
