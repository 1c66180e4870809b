#include "tx/service/sent_transactions.hpp"

#include <gtest/gtest.h>

#include "runtime/manual_steady_clock_test_support.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;

class SentTransactionsTest : public ::testing::Test {
 protected:
  void send(const std::string& hash, std::int64_t nonce) {
    Match match;
    match.attempt_hash = hash;
    match.nonce = nonce;
    sent.add(std::move(match), clock.now());
  }

  test::ManualSteadyClock clock;
  SentTransactions sent{2, clock};
};

TEST_F(SentTransactionsTest, an_unknown_hash_is_not_found) {
  EXPECT_FALSE(sent.take("0x01"));
}

TEST_F(SentTransactionsTest, a_transaction_is_found_once_with_the_time_since_its_claim) {
  send("0x01", 7);
  clock.advance(1500ms);
  const auto match = sent.take("0x01");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->nonce, 7);
  EXPECT_EQ(match->since_submit, 1500ms);
  EXPECT_FALSE(sent.take("0x01"));
}

TEST_F(SentTransactionsTest, the_oldest_is_forgotten_beyond_the_limit) {
  send("0x01", 1);
  send("0x02", 2);
  send("0x03", 3);
  EXPECT_FALSE(sent.take("0x01"));
  EXPECT_TRUE(sent.take("0x02"));
  EXPECT_TRUE(sent.take("0x03"));
}

TEST_F(SentTransactionsTest, a_reorg_forgets_all) {
  send("0x01", 1);
  sent.forget_all();
  EXPECT_FALSE(sent.take("0x01"));
  send("0x02", 2);
  EXPECT_TRUE(sent.take("0x02"));
}

}  // namespace
}  // namespace fencepost::tx
