#include "dev/welcome.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost {
namespace {

using testing::HasSubstr;
using testing::Not;

UpFacts facts() {
  return {.url = "http://127.0.0.1:8080",
          .api_key = Secret("fp_key"),
          .rpc_url = "http://127.0.0.1:8545",
          .chain_id = 31337,
          .signers = {"0xaa", "0xbb"},
          .dsn = "dbname=x",
          .data_dir = "/home/me/var",
          .cluster_dir = "/home/me/var/postgres",
          .log_file = "/home/me/var/fencepost.log",
          .mail_dir = "/home/me/var/mail",
          .program = "./fp",
          .data_dir_flag = ""};
}

TEST(welcome, shows_commands_as_they_are_typed_here) {
  const auto text = welcome(facts());
  EXPECT_THAT(text, HasSubstr("\n  ./fp tx send --signer 0xaa --to 0xbb --value 1 --wait confirmed\n"));
  EXPECT_THAT(text, HasSubstr("\n  ./fp signer list\n"));
  EXPECT_THAT(text, HasSubstr("\n  curl -H 'Authorization: Bearer fp_key' http://127.0.0.1:8080/api/v1/whoami\n"));
  EXPECT_THAT(text, HasSubstr("in another terminal in this folder:\n"));
}

TEST(welcome, commands_name_a_data_directory_other_than_the_default) {
  auto elsewhere = facts();
  elsewhere.data_dir_flag = " --data-dir /tmp/x";
  EXPECT_THAT(welcome(elsewhere), HasSubstr("\n  ./fp tx send --data-dir /tmp/x --signer 0xaa "));
}

TEST(welcome, a_chain_that_the_user_configures_shows_no_signers) {
  auto own = facts();
  own.signers.clear();
  EXPECT_THAT(welcome(own), Not(HasSubstr("tx send")));
}

TEST(welcome, says_where_mails_are_unless_they_go_elsewhere) {
  EXPECT_THAT(welcome(facts()), HasSubstr("\n  Mail      /home/me/var/mail   (./fp mail list)\n"));
  auto own = facts();
  own.mail_dir.clear();
  EXPECT_THAT(welcome(own), Not(HasSubstr("Mail")));
}

TEST(data_dir_flag, is_left_out_for_var_in_the_working_directory) {
  const test::TempDir here{"welcome"};
  EXPECT_EQ(data_dir_flag("var", here.path()), "");
  EXPECT_EQ(data_dir_flag("./var/", here.path()), "");
  EXPECT_EQ(data_dir_flag(here / "var", here.path()), "");
  EXPECT_EQ(data_dir_flag("other", here.path()), " --data-dir other");
  EXPECT_EQ(data_dir_flag("/data/it's mine", here.path()), " --data-dir '/data/it'\\''s mine'");
}

}  // namespace
}  // namespace fencepost
