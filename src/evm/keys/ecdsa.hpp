// The secp256k1 functions that keys and transactions share.
#pragma once

#include <secp256k1.h>

#include "base/error.hpp"
#include "evm/transaction.hpp"

namespace fencepost::evm {

// Created once, blinded with system randomness against side channels, then never changed. Any thread may use it.
const secp256k1_context* ecdsa_context();

Address address_of(const secp256k1_pubkey& key);

// The address whose key made this signature over this hash. Stricter than the library, which accepts both S and its
// twin n - S. Errors: kInvalid `bad_signature` for high S (EIP-2), for r or s that is zero or not under the group's
// order, and for a signature that does not recover to any key.
Result<Address> recover_address(const Hash32& hash, const Signature& signature);

}  // namespace fencepost::evm
