#include "evm/keys/keystore_file.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "evm/address.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::evm {
namespace {

namespace fs = std::filesystem;

constexpr ScryptCost kCheap{.n = 2, .r = 8, .p = 1};
constexpr TimePoint kWhen{std::chrono::microseconds(1'458'651'475'920'751)};

unsigned mode_of(const fs::path& path) {
  struct stat facts{};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0);
  return facts.st_mode & 0777;
}

PrivateKey some_key() {
  return PrivateKey::from_bytes(Bytes(32, 0x46)).value();
}

TEST(keystore_file, is_written_as_geth_would_and_opens_again) {
  const test::TempDir dir("keystore");
  const ManualClock clock(kWhen);
  SeededRandom random(1);
  const auto file = write_keystore(dir / "new" / "keys", some_key(), Secret("pw"), clock, random, kCheap);
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(file->filename(), "UTC--2016-03-22T12-57-55.920751000Z--9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f");
  EXPECT_EQ(mode_of(*file), 0600u);
  EXPECT_EQ(mode_of(file->parent_path()), 0700u);
  const auto opened = read_keystore(*file, Secret("pw"));
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_EQ(opened->address(), some_key().address());
  EXPECT_EQ(read_keystore(*file, Secret("other")).error().code, "wrong_password");
}

TEST(keystore_file, is_not_written_twice_for_one_address) {
  const test::TempDir dir("keystore");
  ManualClock clock(kWhen);
  SeededRandom random(1);
  ASSERT_TRUE(write_keystore(dir.path(), some_key(), Secret("pw"), clock, random, kCheap));
  clock.advance(std::chrono::hours(1));
  const auto again = write_keystore(dir.path(), some_key(), Secret("other"), clock, random, kCheap);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(again.error().code, "keystore_exists");
  EXPECT_EQ(keystore_files(dir.path())->size(), 1u);
}

TEST(keystore_file, lists_key_files_and_skips_hidden_and_unfinished_ones) {
  const test::TempDir dir("keystore");
  for (const auto* name : {"zzz", "aaa", ".hidden", "backup~", "half.new"}) std::ofstream(dir / name) << "x";
  fs::create_directory(dir / "subdirectory");
  EXPECT_EQ(keystore_files(dir.path()), (std::vector{dir / "aaa", dir / "zzz"}));
}

TEST(keystore_file, names_a_file_or_directory_that_cannot_be_read) {
  const test::TempDir dir("keystore");
  const auto listed = keystore_files(dir / "missing");
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, "cannot_read_keystore");
  EXPECT_EQ(read_keystore(dir / "missing", Secret("pw")).error().code, "cannot_read_keystore");
  EXPECT_EQ(read_keystore(dir.path(), Secret("pw")).error().code, "cannot_read_keystore");
  std::ofstream(dir / "empty").flush();
  EXPECT_EQ(read_keystore(dir / "empty", Secret("pw")).error().code, "bad_keystore");
  std::ofstream(dir / "large") << std::string(1 << 20, ' ');
  EXPECT_EQ(read_keystore(dir / "large", Secret("pw")).error().code, "bad_keystore");
}

}  // namespace
}  // namespace fencepost::evm
