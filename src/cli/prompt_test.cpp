#include "cli/prompt.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost::cli {
namespace {

class ReadSecretTest : public testing::Test {
 protected:
  Result<Secret> read(std::string_view content) const {
    const auto file = directory_ / "secret";
    std::ofstream(file, std::ios::binary) << content;
    return read_secret_line(file);
  }
  std::string path(const std::string& name) const { return directory_ / name; }

 private:
  test::TempDir directory_{"prompt"};
};

TEST_F(ReadSecretTest, is_one_line_without_its_line_break) {
  for (const std::string_view content : {"hunter2", "hunter2\n", "hunter2\r\n"}) {
    const auto secret = read(content);
    ASSERT_TRUE(secret.has_value()) << secret.error().message;
    EXPECT_EQ(secret->reveal(), "hunter2");
  }
  EXPECT_EQ(read(std::string(64 << 10, 'x'))->reveal().size(), 64U << 10);
}

TEST_F(ReadSecretTest, a_bad_secret_says_why_without_showing_it) {
  struct Case {
    std::string content;
    std::string reason;
  };
  for (const auto& [content, reason] : {Case{"", "it is empty"},
                                        {"\n", "it is empty"},
                                        {"hunter2\nhunter2\n", "it has more than one line"},
                                        {"hunter2\n\n", "it has more than one line"},
                                        {"hunter2" + std::string(64 << 10, 'x'), "it is too long"}}) {
    const auto secret = read(content);
    ASSERT_FALSE(secret.has_value());
    EXPECT_EQ(secret.error().code, "cannot_read_secret");
    EXPECT_EQ(secret.error().message, "cannot read \"" + path("secret") + "\": " + reason);
  }
  EXPECT_EQ(read_secret_line(path("none")).error().message,
            "cannot read \"" + path("none") + "\": No such file or directory");
  EXPECT_EQ(read_secret_line(path("")).error().message, "cannot read \"" + path("") + "\": Is a directory");
}

}  // namespace
}  // namespace fencepost::cli
