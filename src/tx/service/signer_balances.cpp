#include "tx/service/signer_balances.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>

#include "runtime/on_loop.hpp"

namespace fencepost::tx {
namespace {

awaitable<> pass(std::chrono::milliseconds time) {
  asio::steady_timer timer(co_await this_executor(), time);
  co_await timer.async_wait(use_tuple);
}

}  // namespace

awaitable<std::map<std::string, Uint256>> signer_balances(Executor home, evm::ChainConnector& connector,
                                                          std::vector<std::string> addresses,
                                                          std::chrono::milliseconds limit) {
  using namespace asio::experimental::awaitable_operators;
  auto asked = on_loop(home, [&connector, addresses] { return connector.balances(addresses); });
  auto first = std::move(asked) || pass(limit);
  const auto outcome = co_await std::move(first);
  std::map<std::string, Uint256> out;
  const auto* balances = std::get_if<0>(&outcome);
  if (balances == nullptr) co_return out;
  for (std::size_t i = 0; i < balances->size(); ++i) {
    if ((*balances)[i]) out.emplace(addresses[i], *(*balances)[i]);
  }
  co_return out;
}

}  // namespace fencepost::tx
