// A private key under a password: Web3 Secret Storage, version 3.
//
//   key of the cipher, key of the check = scrypt or PBKDF2 (password)
//   ciphertext                          = AES-128-CTR (private key)
//   mac                                 = Keccak-256 (key of the check, ciphertext)
//
// The mac does not cover the iv: only the address in the file reveals a damaged iv.
//
// Both functions block: deriving the key is slow by design, about a second at the usual cost. Call them from
// Runtime::offload or before the loops start.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"
#include "evm/keys/keystore_json.hpp"
#include "evm/keys/private_key.hpp"

namespace fencepost::evm {

// Errors, kInvalid: those of parse_keystore; `wrong_password`; `bad_keystore` also when the decrypted bytes are not a
// key, or not the key of the address in the file. No error contains anything of the key or the password.
Result<PrivateKey> decrypt_keystore(std::string_view text, const Secret& password);

// The text of a new key file. Tests pass a lower cost. Throws Exception "unsupported_keystore" when the cost is over
// the bounds, since decrypt_keystore would refuse the file.
std::string encrypt_keystore(const PrivateKey& key, const Secret& password, Random& random, const KdfCost& cost = {});

}  // namespace fencepost::evm
