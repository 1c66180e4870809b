#include "tx/service/fresh_submits.hpp"

#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

using Signers = std::vector<std::string>;

SignerLease lease_of(const std::string& signer, std::int64_t token = 1) {
  return {{31337, signer}, token};
}

DueSubmit work(const std::string& signer, std::int64_t nonce, std::int64_t token = 1) {
  DueSubmit due;
  due.lease = lease_of(signer, token);
  due.nonce = nonce;
  return due;
}

// Such as "a:3 a:4".
std::string places(const FreshSubmits::Taken& taken) {
  std::string out;
  for (const auto& tx : taken.work) {
    out += (out.empty() ? "" : " ") + tx.lease.key.signer + ":" + std::to_string(tx.nonce);
  }
  return out;
}

TEST(fresh_submits, nothing_is_taken_from_an_empty_queue) {
  FreshSubmits fresh(10);
  const auto taken = fresh.take(10);
  EXPECT_EQ(places(taken), "");
  EXPECT_EQ(taken.unsure, Signers{});
  EXPECT_FALSE(taken.more);
}

TEST(fresh_submits, a_signer_of_which_nothing_was_accepted_yet_is_looked_up) {
  FreshSubmits fresh(10);
  fresh.add({work("a", 0), work("a", 1)});
  const auto taken = fresh.take(10);
  EXPECT_EQ(places(taken), "");
  EXPECT_EQ(taken.unsure, Signers{"a"});
  EXPECT_EQ(fresh.take(10).unsure, Signers{});  // once
}

TEST(fresh_submits, what_follows_an_accepted_nonce_is_taken_in_order) {
  FreshSubmits fresh(10);
  fresh.accepted(lease_of("a"), 2);
  fresh.accepted(lease_of("b"), 6);
  fresh.add({work("a", 3), work("b", 7), work("a", 4)});
  const auto taken = fresh.take(10);
  EXPECT_EQ(places(taken), "a:3 b:7 a:4");
  EXPECT_EQ(taken.unsure, Signers{});
}

// Nonce 3 may be waiting for its retry, or its hint comes later than that of nonce 4.
TEST(fresh_submits, a_gap_is_looked_up) {
  FreshSubmits fresh(10);
  fresh.accepted(lease_of("a"), 2);
  fresh.add({work("a", 4), work("a", 5)});
  const auto taken = fresh.take(10);
  EXPECT_EQ(places(taken), "");
  EXPECT_EQ(taken.unsure, Signers{"a"});
}

TEST(fresh_submits, what_was_looked_up_and_sent_in_the_meantime_is_dropped) {
  FreshSubmits fresh(10);
  fresh.add({work("a", 3), work("a", 4), work("a", 5)});
  fresh.accepted(lease_of("a"), 4);
  const auto taken = fresh.take(10);
  EXPECT_EQ(places(taken), "a:5");
  EXPECT_EQ(taken.unsure, Signers{});
}

// After a takeover another node may have left transactions that were not accepted.
TEST(fresh_submits, acceptance_under_another_lease_does_not_count) {
  FreshSubmits fresh(10);
  fresh.accepted(lease_of("a", 1), 2);
  fresh.add({work("a", 3, 2)});
  const auto taken = fresh.take(10);
  EXPECT_EQ(places(taken), "");
  EXPECT_EQ(taken.unsure, Signers{"a"});
}

TEST(fresh_submits, a_forgotten_signer_is_looked_up) {
  FreshSubmits fresh(10);
  fresh.accepted(lease_of("a"), 2);
  fresh.forget("a");
  fresh.add({work("a", 3)});
  EXPECT_EQ(fresh.take(10).unsure, Signers{"a"});
}

// The batch was taken and then failed: the next transactions of its signers do not follow an accepted one.
TEST(fresh_submits, a_batch_that_was_taken_and_not_accepted_is_looked_up) {
  FreshSubmits fresh(10);
  fresh.accepted(lease_of("a"), 2);
  fresh.add({work("a", 3)});
  EXPECT_EQ(places(fresh.take(10)), "a:3");
  fresh.add({work("a", 4)});
  const auto taken = fresh.take(10);
  EXPECT_EQ(places(taken), "");
  EXPECT_EQ(taken.unsure, Signers{"a"});
}

TEST(fresh_submits, what_does_not_fit_is_looked_up) {
  FreshSubmits fresh(2);
  fresh.accepted(lease_of("a"), 2);
  fresh.accepted(lease_of("b"), 6);
  fresh.add({work("a", 3), work("a", 4), work("b", 7)});
  const auto taken = fresh.take(10);
  EXPECT_EQ(places(taken), "a:3 a:4");
  EXPECT_EQ(taken.unsure, Signers{"b"});
}

TEST(fresh_submits, a_limit_leaves_the_rest_for_the_next_call) {
  FreshSubmits fresh(10);
  fresh.accepted(lease_of("a"), 2);
  fresh.add({work("a", 3), work("a", 4), work("a", 5)});
  const auto first = fresh.take(2);
  EXPECT_EQ(places(first), "a:3 a:4");
  EXPECT_TRUE(first.more);
  fresh.accepted(lease_of("a"), 4);
  const auto rest = fresh.take(2);
  EXPECT_EQ(places(rest), "a:5");
  EXPECT_FALSE(rest.more);
}

}  // namespace
}  // namespace fencepost::tx
