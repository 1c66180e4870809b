#include "tests/support/stub_chain.hpp"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evm/keys/private_key.hpp"

namespace fencepost::test {
namespace {

using evm::Hash32;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kGwei = 1'000'000'000;

evm::PrivateKey key(std::uint8_t number) {
  std::array<std::uint8_t, 32> bytes{};
  bytes.back() = number;
  return evm::PrivateKey::from_bytes(bytes).value();
}

struct Wish {
  std::uint64_t nonce = 0;
  std::uint64_t gas = 21'000;
  std::uint64_t cap = 4 * kGwei;
  std::uint64_t tip = kGwei;
  std::uint64_t value = 1;
  Bytes data;
  std::uint64_t chain_id = 31337;
};

evm::SignedTransaction sign(const evm::PrivateKey& from, const Wish& wish) {
  evm::Transaction tx;
  tx.chain_id = wish.chain_id;
  tx.nonce = wish.nonce;
  tx.gas = wish.gas;
  tx.to = key(99).address();
  tx.value = wish.value;
  tx.data = wish.data;
  tx.fees = evm::DynamicFees{wish.cap, wish.tip};
  return evm::sign_transaction(from, tx);
}

struct StubChainTest : ::testing::Test {
  StubChain chain;
  const evm::PrivateKey alice = key(1);

  // Sends a transaction that must be accepted; returns its hash.
  Hash32 send(const Wish& wish) {
    const auto tx = sign(alice, wish);
    const auto sent = chain.send(tx.raw);
    EXPECT_TRUE(sent) << sent.error().to_string();
    EXPECT_EQ(sent.value_or(Hash32{}), tx.hash);
    return tx.hash;
  }
  Error refused(const Wish& wish) {
    const auto sent = chain.send(sign(alice, wish).raw);
    EXPECT_FALSE(sent);
    return sent ? Error{} : sent.error();
  }
  bool is_mined(const Hash32& hash) { return chain.find_mined(hash).has_value(); }
};

TEST_F(StubChainTest, starts_with_a_genesis_block_and_links_each_to_its_parent) {
  const auto genesis = chain.head();
  EXPECT_EQ(genesis->number, 0);
  const auto head = chain.mine(3);
  EXPECT_EQ(head->number, 3);
  EXPECT_EQ(chain.block(1)->parent, genesis->hash);
  EXPECT_EQ(chain.block(2)->hash, head->parent);
  EXPECT_EQ(chain.block(head->hash), head);
  EXPECT_EQ(chain.block(4), nullptr);
  EXPECT_EQ(chain.block(-1), nullptr);
}

TEST_F(StubChainTest, mines_in_nonce_order_whatever_the_order_of_arrival) {
  const auto third = send({.nonce = 2});
  const auto first = send({.nonce = 0});
  chain.mine();
  EXPECT_TRUE(is_mined(first));
  EXPECT_FALSE(is_mined(third));
  EXPECT_EQ(chain.nonce(alice.address()), 1U);
  const auto second = send({.nonce = 1});
  EXPECT_EQ(chain.pending_nonce(alice.address()), 3U);
  const auto block = chain.mine();
  ASSERT_EQ(block->receipts.size(), 2U);
  EXPECT_EQ(block->receipts[0].transaction->hash, second);
  EXPECT_EQ(block->receipts[1].transaction->hash, third);
  EXPECT_EQ(block->gas_used, 42'000U);
  EXPECT_EQ(block->receipts[1].gas_so_far, 42'000U);
  EXPECT_EQ(chain.pool_size(), 0U);
}

TEST_F(StubChainTest, knows_what_it_has_and_refuses_used_nonces) {
  send({.nonce = 0});
  EXPECT_EQ(refused({.nonce = 0}).code, "already_known");
  chain.mine();
  EXPECT_EQ(refused({.nonce = 0}).message, "nonce too low: next nonce 1, tx nonce 0");
}

TEST_F(StubChainTest, replaces_for_ten_percent_more_of_both_fees) {
  const auto first = send({.cap = 10 * kGwei, .tip = 10});
  EXPECT_EQ(refused({.cap = 11 * kGwei, .tip = 10}).code, "underpriced");
  EXPECT_EQ(refused({.cap = 11 * kGwei - 1, .tip = 11}).message, "replacement transaction underpriced");
  const auto second = send({.cap = 11 * kGwei, .tip = 11});
  EXPECT_EQ(chain.find_pooled(first), nullptr);
  chain.mine();
  EXPECT_FALSE(is_mined(first));
  EXPECT_TRUE(is_mined(second));
}

TEST_F(StubChainTest, refuses_what_pays_less_than_the_base_fee_and_lets_the_accepted_wait) {
  const auto accepted = send({.cap = 2 * kGwei});
  chain.set_base_fee(3 * kGwei);
  EXPECT_THAT(refused({.nonce = 1, .cap = 2 * kGwei}).message, HasSubstr("max fee per gas less than block base fee: "));
  chain.mine();
  EXPECT_FALSE(is_mined(accepted));
  chain.set_base_fee(kGwei);
  chain.mine();
  EXPECT_TRUE(is_mined(accepted));
}

TEST_F(StubChainTest, refuses_what_no_chain_could_take) {
  EXPECT_EQ(chain.send(Bytes{0x02, 0xc0}).error().code, "bad_transaction");
  EXPECT_EQ(refused({.chain_id = 1}).message, "invalid chain id for signer: have 1 want 31337");
  EXPECT_EQ(refused({.gas = 20'999}).message, "intrinsic gas too low: gas 20999, minimum needed 21000");
  EXPECT_EQ(refused({.gas = chain.gas_limit() + 1}).message, "exceeds block gas limit");
}

TEST_F(StubChainTest, moves_value_and_takes_fees) {
  chain.set_balance(alice.address(), Uint256(21'000) * 4 * kGwei + 5);
  const auto before = chain.balance(key(99).address());
  EXPECT_EQ(refused({.value = 6}).code, "insufficient_funds");
  send({.value = 5});
  const auto block = chain.mine();
  EXPECT_EQ(block->receipts.at(0).gas_price, Uint256(2 * kGwei));  // base fee plus tip
  EXPECT_EQ(chain.balance(alice.address()), Uint256(21'000) * 2 * kGwei);
  EXPECT_EQ(chain.balance(key(99).address()), before + 5);
}

TEST_F(StubChainTest, refuses_a_fee_that_overflows) {
  evm::Transaction tx;
  tx.chain_id = 31337;
  tx.gas = 30'000;
  const auto most = std::numeric_limits<Uint256>::max();
  tx.value = most;
  tx.fees = evm::DynamicFees{most, most};
  tx.to = key(99).address();
  EXPECT_EQ(chain.send(evm::sign_transaction(alice, tx).raw).error().code, "insufficient_funds");
}

TEST_F(StubChainTest, fails_what_begins_with_fe_and_keeps_its_value) {
  const auto before = chain.balance(key(99).address());
  send({.gas = 100'000, .value = 7, .data = {0xfe, 1}});
  EXPECT_FALSE(chain.mine()->receipts.at(0).succeeded);
  EXPECT_EQ(chain.balance(key(99).address()), before);
  EXPECT_EQ(chain.nonce(alice.address()), 1U);
}

TEST_F(StubChainTest, fills_a_block_up_to_its_gas_limit_and_takes_turns) {
  StubChain small({.gas_limit = 63'000});
  const auto bob = key(2);
  for (std::uint64_t n = 0; n < 4; ++n) ASSERT_TRUE(small.send(sign(alice, {.nonce = n}).raw));
  for (std::uint64_t n = 0; n < 2; ++n) ASSERT_TRUE(small.send(sign(bob, {.nonce = n}).raw));
  EXPECT_EQ(small.mine()->receipts.size(), 3U);
  EXPECT_EQ(small.mine()->receipts.size(), 3U);
  EXPECT_EQ(small.nonce(alice.address()), 4U);
  EXPECT_EQ(small.nonce(bob.address()), 2U);
}

TEST_F(StubChainTest, remembers_the_nonce_after_each_block) {
  send({.nonce = 0});
  chain.mine();
  chain.mine();
  send({.nonce = 1});
  send({.nonce = 2});
  chain.mine();
  const auto at = [&](std::int64_t number) { return chain.nonce_at(alice.address(), number); };
  EXPECT_EQ(at(0), 0U);
  EXPECT_EQ(at(1), 1U);
  EXPECT_EQ(at(2), 1U);
  EXPECT_EQ(at(3), 3U);
}

TEST_F(StubChainTest, a_reorg_makes_another_branch_that_is_longer) {
  const auto kept = chain.mine();
  const auto undone = chain.mine(2);
  chain.reorg(2, Fate::kDropped);
  EXPECT_EQ(chain.head()->number, 4);
  EXPECT_EQ(chain.block(1), kept);
  EXPECT_EQ(chain.block(undone->hash), nullptr);
  EXPECT_EQ(chain.block(2)->parent, kept->hash);
  chain.reorg(2, Fate::kDropped, 1);
  EXPECT_EQ(chain.head()->number, 3);
}

TEST_F(StubChainTest, what_a_reorg_drops_is_gone_until_it_is_sent_again) {
  const auto balance = chain.balance(alice.address());
  const auto hash = send({.nonce = 0});
  chain.mine();
  chain.reorg(1, Fate::kDropped);
  chain.mine();
  EXPECT_FALSE(is_mined(hash));
  EXPECT_EQ(chain.nonce(alice.address()), 0U);
  EXPECT_EQ(chain.balance(alice.address()), balance);
  send({.nonce = 0});
  chain.mine();
  EXPECT_TRUE(is_mined(hash));
}

TEST_F(StubChainTest, what_a_reorg_puts_back_is_mined_again_with_those_behind_it) {
  const auto first = send({.nonce = 0});
  const auto second = send({.nonce = 1});
  chain.mine();
  const auto third = send({.nonce = 2});
  chain.mine();
  chain.reorg(2, Fate::kBackToPool);
  EXPECT_FALSE(is_mined(first));
  EXPECT_EQ(chain.nonce(alice.address()), 0U);
  EXPECT_EQ(chain.nonce_at(alice.address(), 1), 0U);
  EXPECT_EQ(chain.pending_nonce(alice.address()), 3U);
  const auto block = chain.mine();
  EXPECT_EQ(block->receipts.size(), 3U);
  EXPECT_EQ(chain.find_mined(first)->block, block);
  EXPECT_TRUE(is_mined(second) && is_mined(third));
}

TEST_F(StubChainTest, history_lists_what_was_mined_at_a_nonce_on_any_branch) {
  const auto first = send({.nonce = 0, .value = 1});
  chain.mine();
  chain.reorg(1, Fate::kDropped);
  const auto second = send({.nonce = 0, .value = 2});
  chain.mine();
  chain.reorg(1, Fate::kBackToPool);
  chain.mine();
  EXPECT_THAT(chain.history(alice.address(), 0), ElementsAre(first, second));
  EXPECT_THAT(chain.history(alice.address(), 1), IsEmpty());
  EXPECT_EQ(chain.mined_count(), 3U);
}

TEST_F(StubChainTest, evicts_from_the_pool_only) {
  const auto mined = send({.nonce = 0});
  chain.mine();
  EXPECT_FALSE(chain.evict(mined));
  const auto waiting = send({.nonce = 1});
  EXPECT_TRUE(chain.evict(waiting));
  chain.mine();
  EXPECT_FALSE(is_mined(waiting));
  send({.nonce = 1});
  chain.mine();
  EXPECT_TRUE(is_mined(waiting));
}

TEST_F(StubChainTest, forgets_old_blocks_and_what_was_in_them) {
  StubChain forgetful({.keep_blocks = 3});
  const auto old = sign(alice, {.nonce = 0});
  ASSERT_TRUE(forgetful.send(old.raw));
  forgetful.mine(2);
  EXPECT_TRUE(forgetful.find_mined(old.hash));
  forgetful.mine(2);
  EXPECT_FALSE(forgetful.find_mined(old.hash));
  EXPECT_EQ(forgetful.block(1), nullptr);
  EXPECT_EQ(forgetful.nonce_at(alice.address(), 2), 1U);
  forgetful.reorg(100, Fate::kDropped);  // only as deep as the stored blocks
  EXPECT_EQ(forgetful.head()->number, 5);
  EXPECT_EQ(forgetful.nonce(alice.address()), 1U);
}

TEST_F(StubChainTest, says_what_is_safe_and_final) {
  chain.mine(3);
  EXPECT_EQ(chain.safe_number(), 1);
  EXPECT_EQ(chain.finalized_number(), 0);
  chain.set_distances(0, 1);
  EXPECT_EQ(chain.safe_number(), 3);
  EXPECT_EQ(chain.finalized_number(), 2);
}

TEST_F(StubChainTest, gives_blocks_the_time_of_its_clock_and_never_goes_back) {
  ManualClock clock(TimePoint{std::chrono::seconds(1'000)});
  StubChain timed({}, clock);
  clock.advance(std::chrono::seconds(5));
  EXPECT_EQ(timed.mine()->timestamp, 1'005);
  clock.set(TimePoint{std::chrono::seconds(900)});
  EXPECT_EQ(timed.mine()->timestamp, 1'005);
}

TEST_F(StubChainTest, several_threads_may_use_it) {
  constexpr std::uint64_t kEach = 50;
  std::vector<std::thread> senders;
  for (std::uint8_t who = 1; who <= 4; ++who) {
    senders.emplace_back([this, who] {
      const auto from = key(who);
      for (std::uint64_t n = 0; n < kEach; ++n) {
        EXPECT_TRUE(chain.send(sign(from, {.nonce = n}).raw));
        if (n % 10 == 0) chain.mine();
      }
    });
  }
  for (auto& sender : senders) sender.join();
  chain.mine();
  EXPECT_EQ(chain.mined_count(), 4 * kEach);
  EXPECT_EQ(chain.pool_size(), 0U);
}

}  // namespace
}  // namespace fencepost::test
