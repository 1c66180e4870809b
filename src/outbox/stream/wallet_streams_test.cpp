#include "outbox/stream/wallet_streams.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace fencepost::outbox {
namespace {

TEST(wallet_streams, a_wallet_has_few_places_and_gets_them_back) {
  const auto streams = std::make_shared<WalletStreams>();
  std::vector<WalletStreams::Place> places;
  for (std::size_t i = 0; i < WalletStreams::kOfOneWallet; ++i) {
    places.push_back(streams->take("a"));
    EXPECT_NE(places.back(), nullptr);
  }
  EXPECT_EQ(streams->take("a"), nullptr);
  EXPECT_NE(streams->take("b"), nullptr);
  places.pop_back();
  EXPECT_NE(streams->take("a"), nullptr);
}

TEST(wallet_streams, all_wallets_together_are_bounded) {
  const auto streams = std::make_shared<WalletStreams>();
  std::vector<WalletStreams::Place> places;
  for (std::size_t i = 0; i < WalletStreams::kInAll; ++i) places.push_back(streams->take(std::to_string(i)));
  EXPECT_NE(places.back(), nullptr);
  EXPECT_EQ(streams->take("one more"), nullptr);
  places.clear();
  EXPECT_NE(streams->take("one more"), nullptr);
}

}  // namespace
}  // namespace fencepost::outbox
