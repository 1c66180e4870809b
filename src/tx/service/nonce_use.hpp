// Finds the transaction that used a signer's nonce, on the node's own branch.
//
// Searches for the first block after which the account's count is above the nonce, from the head down, so that an
// endpoint that keeps only recent state can answer for a recent use. Then reads that block's transactions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

struct NonceUse {
  std::string tx_hash;
  std::int64_t block_number = 0;
  std::string block_hash;
};

struct NonceSearch {
  std::optional<NonceUse> use;
  std::string why;  // when there is no `use`
};

// Asks one endpoint.
awaitable<NonceSearch> find_nonce_use(ChainContext& chain, SignerKey key, std::int64_t nonce, std::size_t endpoint);

// Whether another endpoint than `except` has the same transaction in the same block. True when there is no other
// endpoint.
awaitable<bool> another_endpoint_confirms(ChainContext& chain, SignerKey key, std::int64_t nonce, NonceUse use,
                                          std::size_t except);

}  // namespace fencepost::tx
