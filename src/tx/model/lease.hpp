// Who may write for a signer, as the tables know it (DESIGN: a fenced write locks the lease).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace fencepost::tx {

// A nonce, a lease and a line of transactions belong to one of these.
struct SignerKey {
  std::int64_t chain_id = 0;
  std::string signer;  // lowercase, with 0x

  friend auto operator<=>(const SignerKey&, const SignerKey&) = default;
};

// A lease that this node holds, or did: only PostgreSQL knows. The token is what every write carries.
struct SignerLease {
  SignerKey key;
  std::int64_t fencing_token = 0;
};

}  // namespace fencepost::tx

template <>
struct std::hash<fencepost::tx::SignerKey> {
  std::size_t operator()(const fencepost::tx::SignerKey& key) const noexcept {
    return std::hash<std::string>()(key.signer) ^ std::hash<std::int64_t>()(key.chain_id);
  }
};
