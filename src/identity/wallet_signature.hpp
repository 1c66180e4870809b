// Whether a wallet signed a message: with its key (EIP-191), or as a contract that says so (EIP-1271), such as a Safe.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/hex.hpp"
#include "evm/chain.hpp"
#include "evm/transaction.hpp"

namespace fencepost::identity {

using Chains = std::vector<std::unique_ptr<evm::Chain>>;

// What `personal_sign` signs.
evm::Hash32 personal_message_hash(std::string_view text);

// Whether the key of that address made this signature: r, s and v, 65 bytes, with the low s only.
bool signed_by_key(const evm::Hash32& hash, std::span<const std::uint8_t> signature, std::string_view address);

// How many contracts are asked now. Anyone can make us ask one, and the chain's connections are shared with everything
// else.
struct ContractChecks {
  static constexpr int kAtOnce = 4;
  std::atomic<int> running = 0;
};

// Asks the contract only if the key did not sign; `chain_id` says on which chain it is. Errors: kUnauthenticated
// `bad_login_signature`; kRateLimited `rate_limited` when too many are asked now; kUnavailable
// `login_chain_unavailable`, without what the endpoint said, which is not for strangers. Any loop.
awaitable<Result<void>> check_wallet_signature(const Chains& chains, std::int64_t chain_id, std::string address,
                                               std::string_view text, Bytes signature, ContractChecks& checks);

}  // namespace fencepost::identity
