// Which node may write for a signer: the key and the lease that a fenced write checks (docs/correctness.md).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace fencepost::tx {

// A signer on a chain. Each has its own lease, nonce cursor and transactions.
struct SignerKey {
  std::int64_t chain_id = 0;
  std::string signer;  // lowercase, with 0x

  friend auto operator<=>(const SignerKey&, const SignerKey&) = default;
};

// A lease that this node holds or held; only PostgreSQL knows whether it is still valid. Every fenced write carries the
// token.
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
