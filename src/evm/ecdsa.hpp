// What keys and transactions share of secp256k1.
#pragma once

#include <secp256k1.h>

#include "base/error.hpp"
#include "evm/transaction.hpp"

namespace fencepost::evm {

// Made once, blinded with system randomness against side channels, and never changed afterwards: any thread may use it.
const secp256k1_context* ecdsa_context();

Address address_of(const secp256k1_pubkey& key);

// The address whose key made this signature over this hash. Stricter than the library, which accepts both S and its
// twin n - S: kInvalid `bad_signature` for high S (EIP-2), for r or s that is zero or not under the group's order, and
// for a signature that no key can have made.
Result<Address> recover_address(const Hash32& hash, const Signature& signature);

}  // namespace fencepost::evm
