// The codes that prove that a person reads an address. Pure: no I/O.
//
// A code follows from a random salt and the secret of this installation, so that any node can mail it, and mail it
// again after a crash. The salt is stored only until the mail has left; after that there is only the hash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"

namespace fencepost::notify {

inline constexpr int kCodeMaxTries = 5;

// 16 random bytes. Requires: `random` is fit for secrets.
std::string make_code_salt(Random& random);
// Six digits.
std::string code_of(const Secret& key, std::string_view salt);
// The same digits have another hash for each address of each person.
Digest256 code_hash(const Secret& key, std::int64_t user_email_id, std::string_view code);

}  // namespace fencepost::notify
