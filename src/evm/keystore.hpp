// A private key under a password: Web3 Secret Storage, version 3.
//
//   key of the cipher, key of the check = scrypt or PBKDF2 (password)
//   ciphertext                          = AES-128-CTR (private key)
//   mac                                 = Keccak-256 (key of the check, ciphertext)
//
// The mac does not cover the iv: that a damaged one is noticed is owed to the address in the file alone.
//
// Deriving is slow by design, about a second at the usual cost, and blocks: call from Runtime::offload or before the
// loops start.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"
#include "evm/keystore_json.hpp"
#include "evm/private_key.hpp"

namespace fencepost::evm {

// Errors, kInvalid: those of parse_keystore; `wrong_password`; `bad_keystore` also when what was decrypted is no key,
// or not the key of the address that the file states. No error contains anything of the key or the password.
Result<PrivateKey> decrypt_keystore(std::string_view text, const Secret& password);

// The text of a new key file. The cost is for tests to lower; throws Exception "unsupported_keystore" when it is over
// the bounds, since nothing could open the file.
std::string encrypt_keystore(const PrivateKey& key, const Secret& password, Random& random, const KdfCost& cost = {});

}  // namespace fencepost::evm
