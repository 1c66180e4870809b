#include "tx/service/nonce_use.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tx/service/block_check.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kHashesPerBatch = 100;

class Search {
 public:
  Search(ChainContext& chain, SignerKey key, std::int64_t nonce, std::size_t endpoint)
      : chain_(chain), key_(std::move(key)), nonce_(nonce), endpoint_(endpoint) {}

  awaitable<NonceSearch> run() {
    const auto* head = chain_.follower.window().head();
    if (head == nullptr) co_return nothing("this node knows no block yet");
    // An endpoint that is a little behind can answer for its own head.
    const auto known = chain_.connector.endpoint_status(endpoint_).head;
    const auto head_number = known ? std::min(*known, head->number) : head->number;
    if (co_await used_at(head_number) != true) {
      co_return nothing(fmt::format("the endpoint does not say that the nonce is used at block {}", head_number));
    }
    const auto [block_number, before_known] = co_await first_used(head_number);
    if (!before_known) {
      co_return nothing(fmt::format("no count of the signer's nonces is known before block {}", block_number));
    }
    co_return co_await look_into(block_number);
  }

 private:
  static NonceSearch nothing(std::string why) { return {std::nullopt, std::move(why)}; }

  // nullopt when the endpoint does not answer, for instance because it has dropped the state of that block.
  awaitable<std::optional<bool>> used_at(std::int64_t number) {
    if (number < 0) co_return false;
    const auto count = co_await chain_.connector.nonce_at(key_.signer, number, endpoint_);
    if (!count) co_return std::nullopt;
    co_return *count > nonce_;
  }

  struct First {
    std::int64_t number;
    bool before_known;  // the endpoint says that the nonce is unused in the block before
  };
  // Requires: the nonce is used at `used`.
  awaitable<First> first_used(std::int64_t used) {
    std::int64_t low = used;
    std::optional<bool> at_low = true;
    for (std::int64_t step = 1; at_low == true; step *= 2) {
      used = low;
      low = std::max<std::int64_t>(-1, used - step);
      at_low = co_await used_at(low);
    }
    while (used - low > 1) {
      const auto middle = low + (used - low) / 2;
      const auto at_middle = co_await used_at(middle);
      if (at_middle == true) {
        used = middle;
      } else {
        low = middle;
        at_low = at_middle;
      }
    }
    co_return First{used, at_low == false};
  }

  awaitable<NonceSearch> look_into(std::int64_t number) {
    const auto blocks = co_await chain_.connector.blocks(number, 1, endpoint_);
    if (!blocks || blocks->empty()) co_return nothing(fmt::format("the endpoint does not return block {}", number));
    const auto& block = blocks->front();
    if (co_await is_on_chain(chain_, number, block.header.hash) != true) {
      co_return nothing(
          fmt::format("the endpoint's block {} is not on this node's branch, or not known to be", number));
    }
    const auto& hashes = block.transactions;
    bool all = true;
    for (std::size_t begin = 0; begin < hashes.size(); begin += kHashesPerBatch) {
      const auto end = std::min(begin + kHashesPerBatch, hashes.size());
      const std::vector<std::string> some(hashes.begin() + static_cast<std::ptrdiff_t>(begin),
                                          hashes.begin() + static_cast<std::ptrdiff_t>(end));
      for (const auto& found : co_await chain_.connector.transactions(some, endpoint_)) {
        if (!found || !*found) {
          all = false;
        } else if ((*found)->from == key_.signer && (*found)->nonce == nonce_) {
          co_return NonceSearch{NonceUse{(*found)->hash, number, block.header.hash}, {}};
        }
      }
    }
    co_return nothing(
        all ? fmt::format("block {} has no transaction of the signer at this nonce; an EIP-7702 authorization may have "
                          "used it",
                          number)
            : fmt::format("the endpoint does not return all transactions of block {}", number));
  }

  ChainContext& chain_;
  SignerKey key_;
  std::int64_t nonce_;
  std::size_t endpoint_;
};

}  // namespace

awaitable<NonceSearch> find_nonce_use(ChainContext& chain, SignerKey key, std::int64_t nonce, std::size_t endpoint) {
  Search search(chain, std::move(key), nonce, endpoint);
  co_return co_await search.run();
}

awaitable<bool> another_endpoint_confirms(ChainContext& chain, SignerKey key, std::int64_t nonce, NonceUse use,
                                          std::size_t except) {
  const auto endpoints = chain.connector.endpoint_count();
  if (endpoints == 1) co_return true;
  for (std::size_t endpoint = 0; endpoint < endpoints; ++endpoint) {
    if (endpoint == except || chain.connector.endpoint_status(endpoint).wrong_chain) continue;
    const auto known = co_await chain.connector.transaction(use.tx_hash, endpoint);
    if (!known || !*known) continue;
    const auto& theirs = **known;
    if (theirs.from == key.signer && theirs.nonce == nonce && theirs.block_hash == use.block_hash) co_return true;
  }
  co_return false;
}

}  // namespace fencepost::tx
