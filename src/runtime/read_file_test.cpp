#include "runtime/read_file.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost {
namespace {

TEST(read_file, gives_the_whole_text_or_what_comes_after_a_place) {
  const test::TempDir dir("read-file");
  const std::string text = std::string(40'000, 'a') + '\0' + "end\n";
  std::ofstream(dir / "file", std::ios::binary) << text;
  EXPECT_EQ(read_file(dir / "file"), text);
  EXPECT_EQ(read_file(dir / "file", 40'001), "end\n");
  EXPECT_EQ(read_tail(dir / "file", 0, 3), "nd\n");
  EXPECT_EQ(read_tail(dir / "file", 40'003, 100), "d\n");
  EXPECT_EQ(file_size_or_zero(dir / "file"), text.size());
}

// A process that ends between open and read makes the read fail in the same way as a directory does.
TEST(read_file, gives_nothing_when_reading_fails) {
  const test::TempDir dir("read-file");
  EXPECT_EQ(read_file(dir / "missing"), "");
  EXPECT_EQ(read_tail(dir / "missing", 0, 10), "");
  EXPECT_EQ(file_size_or_zero(dir / "missing"), 0U);
  EXPECT_EQ(read_file(dir.path()), "");
}

}  // namespace
}  // namespace fencepost
