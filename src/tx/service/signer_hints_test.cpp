#include "tx/service/signer_hints.hpp"

#include <gtest/gtest.h>

#include "runtime/manual_steady_clock_test_support.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;
using Signers = std::vector<std::string>;

class SignerHintsTest : public ::testing::Test {
 protected:
  test::ManualSteadyClock clock;
  SignerHints hints{1s, clock};
};

TEST_F(SignerHintsTest, the_first_look_is_at_all_signers) {
  hints.add(Signers{"a"});
  EXPECT_EQ(hints.take(), std::nullopt);
  EXPECT_EQ(hints.take(), Signers{});  // the look at all signers has included the hinted one
}

TEST_F(SignerHintsTest, hinted_signers_are_taken_once_and_without_repetition) {
  hints.take();
  hints.add(Signers{"b", "a"});
  hints.add(Signers{"b"});
  EXPECT_EQ(hints.take(), (Signers{"a", "b"}));
  EXPECT_EQ(hints.take(), Signers{});
}

TEST_F(SignerHintsTest, a_hint_at_any_signer_means_all) {
  hints.take();
  hints.add(Signers{"a"});
  hints.add(std::nullopt);
  EXPECT_EQ(hints.take(), std::nullopt);
  EXPECT_EQ(hints.take(), Signers{});
}

TEST_F(SignerHintsTest, all_signers_are_looked_at_once_per_interval_however_many_hints_there_are) {
  hints.take();
  clock.advance(999ms);
  hints.add(Signers{"a"});
  EXPECT_EQ(hints.take(), Signers{"a"});
  clock.advance(1ms);
  hints.add(Signers{"a"});
  EXPECT_EQ(hints.take(), std::nullopt);
}

}  // namespace
}  // namespace fencepost::tx
