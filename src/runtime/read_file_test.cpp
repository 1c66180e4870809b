#include "runtime/read_file.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost {
namespace {

TEST(read_file, returns_the_whole_text_or_the_text_after_an_offset) {
  const test::TempDir dir("read-file");
  const std::string text = std::string(40'000, 'a') + '\0' + "end\n";
  std::ofstream(dir / "file", std::ios::binary) << text;
  EXPECT_EQ(read_file(dir / "file"), text);
  EXPECT_EQ(read_file(dir / "file", 40'001), "end\n");
  EXPECT_EQ(read_tail(dir / "file", 0, 3), "nd\n");
  EXPECT_EQ(read_tail(dir / "file", 40'003, 100), "d\n");
  EXPECT_EQ(file_size_or_zero(dir / "file"), text.size());
}

// Reading a directory fails in the same way as reading a /proc file of a process that has just ended.
TEST(read_file, returns_nothing_when_reading_fails) {
  const test::TempDir dir("read-file");
  EXPECT_EQ(read_file(dir / "missing"), "");
  EXPECT_EQ(read_tail(dir / "missing", 0, 10), "");
  EXPECT_EQ(file_size_or_zero(dir / "missing"), 0U);
  EXPECT_EQ(read_file(dir.path()), "");
}

}  // namespace
}  // namespace fencepost
