#include "tx/service/nonce_history.hpp"

#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

SeenCount seen(std::int64_t block, std::int64_t count, const std::string& branch = "a") {
  return {block, branch + std::to_string(block), count};
}

TEST(nonce_history, keeps_the_first_block_of_each_count) {
  NonceHistory history;
  history.note("s", seen(10, 3));
  history.note("s", seen(12, 3));
  history.note("s", seen(15, 5));
  EXPECT_EQ(history.newest_until("s", 9), std::nullopt);
  EXPECT_EQ(history.newest_until("s", 14), seen(10, 3));
  EXPECT_EQ(history.newest_until("s", 15), seen(15, 5));
  EXPECT_EQ(history.newest_until("s", 14), std::nullopt) << "the older entry says less and is gone";
  EXPECT_EQ(history.newest_until("other", 99), std::nullopt);
}

TEST(nonce_history, a_reorg_replaces_what_was_seen_above_it) {
  NonceHistory history;
  history.note("s", seen(10, 3));
  history.note("s", seen(12, 4));
  history.note("s", seen(12, 3, "b"));
  EXPECT_EQ(history.newest_until("s", 20), seen(10, 3));
  history.note("s", seen(13, 4, "b"));
  EXPECT_EQ(history.newest_until("s", 20), seen(13, 4, "b"));
}

TEST(nonce_history, an_entry_on_a_dead_branch_is_forgotten) {
  NonceHistory history;
  history.note("s", seen(10, 3));
  history.forget("s", seen(10, 3, "b"));
  EXPECT_EQ(history.newest_until("s", 20), seen(10, 3));
  history.forget("s", seen(10, 3));
  EXPECT_EQ(history.newest_until("s", 20), std::nullopt);
}

TEST(nonce_history, a_full_history_keeps_what_it_has) {
  NonceHistory history;
  const auto most = static_cast<std::int64_t>(NonceHistory::kPerSigner);
  for (std::int64_t i = 0; i <= most; ++i) history.note("s", seen(i, i));
  EXPECT_EQ(history.newest_until("s", most + 10), seen(most - 1, most - 1));
}

}  // namespace
}  // namespace fencepost::tx
