// Addresses as people write them (EIP-55) and as they are stored: lowercase with 0x.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "evm/transaction.hpp"

namespace fencepost::evm {

// What is stored. Takes digits that are all lowercase or all uppercase, which carry no checksum, or mixed ones whose
// checksum is right. Errors, kInvalid: `bad_address` when it is none at all, `bad_checksum` when a digit or its case
// is mistyped.
Result<std::string> parse_address(std::string_view text);

// The mixed-case form for people, of a stored address. Throws Exception "bad_address" when it is not in stored form.
std::string checksum_address(std::string_view lowercase);

// Between the stored form and bytes. Throws Exception "bad_address" when the text is not in stored form: whatever
// comes from outside has been through parse_address.
Address address_bytes(std::string_view lowercase);
std::string address_text(const Address& address);

// Where the contract lives that this transaction creates (CREATE, not CREATE2).
Address contract_address(const Address& creator, std::uint64_t nonce);

}  // namespace fencepost::evm
