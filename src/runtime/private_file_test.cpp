#include "runtime/private_file.hpp"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(private_file, is_readable_only_by_its_owner_and_replaced_atomically) {
  const test::TempDir dir("private-file");
  const auto file = dir / "secret";
  ASSERT_TRUE(write_private_file(file, "first and longer"));
  ASSERT_TRUE(write_private_file(file, "second"));
  EXPECT_EQ(text_of(file), "second");
  struct stat facts{};
  ASSERT_EQ(::stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1) << "nothing else is left behind";
}

TEST(private_file, says_why_it_cannot_be_written) {
  const test::TempDir dir("private-file");
  const auto written = write_private_file(dir / "missing" / "secret", "text");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, "cannot_write");
  EXPECT_NE(written.error().message.find("No such file"), std::string::npos) << written.error().message;
}

}  // namespace
}  // namespace fencepost
