#include "cli/mistake.hpp"

#include <vector>

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace fencepost::cli {
namespace {

class Mistake : public testing::Test {
 protected:
  Mistake() {
    app_.name("fencepost");
    auto* tx = app_.add_subcommand("tx", "");
    tx->add_subcommand("send", "")->add_option("--signer,-s", text_, "");
    tx->add_subcommand("list", "");
    app_.add_subcommand("serve", "")->add_option("--config", text_, "");
  }

  std::string explained(const std::vector<std::string>& arguments) {
    return explain_mistake(app_, arguments).value_or("(nothing)");
  }

 private:
  CLI::App app_;
  std::string text_;
};

TEST_F(Mistake, a_command_that_does_not_exist_is_named_with_the_nearest) {
  EXPECT_EQ(explained({"sevre"}),
            "there is no command \"fencepost sevre\"; did you mean \"serve\"?\nCommands of fencepost: tx, serve");
  EXPECT_EQ(explained({"bogus", "--config", "x"}),
            "there is no command \"fencepost bogus\"\nCommands of fencepost: tx, serve");
  EXPECT_EQ(explained({"tx", "sned", "--signer", "x"}),
            "there is no command \"fencepost tx sned\"; did you mean \"send\"?\nCommands of fencepost tx: send, list");
}

TEST_F(Mistake, a_missing_command_lists_the_choices) {
  EXPECT_EQ(explained({}), "a command of fencepost is missing; expected one of: tx, serve");
  EXPECT_EQ(explained({"tx"}), "a command of fencepost tx is missing; expected one of: send, list");
}

TEST_F(Mistake, a_flag_that_does_not_exist_is_named_with_the_nearest) {
  EXPECT_EQ(explained({"tx", "send", "--singer=0x1"}),
            "there is no flag \"--singer\" of fencepost tx send; did you mean \"--signer\"?");
  EXPECT_EQ(explained({"serve", "--config", "x", "--zebra"}), "there is no flag \"--zebra\" of fencepost serve");
  EXPECT_EQ(explained({"--config", "x"}), "there is no flag \"--config\" of fencepost");
  EXPECT_EQ(explained({"-v"}), "there is no flag \"-v\" of fencepost");
  EXPECT_EQ(explained({"tx", "send", "-x", "1"}), "there is no flag \"-x\" of fencepost tx send");
  EXPECT_EQ(explained({"tx", "send", "-s0x1", "-5", "-"}), "(nothing)") << "-5 is a value";
}

TEST_F(Mistake, a_bad_value_is_left_to_the_parser) {
  EXPECT_EQ(explained({"tx", "send", "--signer", "x", "-s"}), "(nothing)");
  EXPECT_EQ(explained({"serve", "extra", "--", "--zebra"}), "(nothing)");
}

}  // namespace
}  // namespace fencepost::cli
