#include "tx/service/known_attempts.hpp"

#include <algorithm>

#include "tx/store/tx_store.hpp"

namespace fencepost::tx {
namespace {

awaitable<std::vector<std::string>> hashes_of(ChainContext& chain, Uuid tx_id) {
  std::vector<std::string> hashes;
  for (auto& attempt : co_await list_attempts(chain.database.pool(), tx_id)) {
    hashes.push_back(std::move(attempt.tx_hash));
  }
  co_return hashes;
}

awaitable<bool> shows_any(ChainContext& chain, std::vector<std::string> hashes) {
  if (hashes.empty()) co_return false;
  for (std::size_t endpoint = 0; endpoint < chain.connector.endpoint_count(); ++endpoint) {
    // Its operator's mistake may be temporary: it may have the transaction all the same.
    if (chain.connector.endpoint_status(endpoint).wrong_chain) co_return true;
    const auto answers = co_await chain.connector.transactions(hashes, endpoint);
    if (std::ranges::any_of(answers, [](const auto& known) { return !known || *known; })) co_return true;
  }
  co_return false;
}

}  // namespace

awaitable<bool> may_be_shown(ChainContext& chain, Uuid tx_id) {
  auto hashes = co_await hashes_of(chain, tx_id);
  co_return co_await shows_any(chain, std::move(hashes));
}

awaitable<bool> may_be_known(ChainContext& chain, Uuid tx_id) {
  auto hashes = co_await hashes_of(chain, tx_id);
  if (!hashes.empty() && chain.connector.has_relays()) co_return true;
  co_return co_await shows_any(chain, std::move(hashes));
}

}  // namespace fencepost::tx
