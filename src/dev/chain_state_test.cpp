#include "dev/chain_state.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;

class chain_state : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }
  // "(none)" if there is no such file.
  std::string read(const std::string& name) const {
    std::ifstream file(dir_ / name, std::ios::binary);
    if (!file) return "(none)";
    return {std::istreambuf_iterator<char>(file), {}};
  }
  ChainState state() const { return ChainState(dir_.path()); }

 private:
  test::TempDir dir_{"chain"};
};

TEST_F(chain_state, a_complete_file_differs_from_every_truncation_of_it) {
  const std::string whole = R"({"a":{"b":["}]\"{\\",{"c":1}]},"d":"0x"})";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write("f", whole.substr(0, length));
    EXPECT_FALSE(is_whole_json(state().file().parent_path() / "f")) << whole.substr(0, length);
  }
  write("f", whole);
  EXPECT_TRUE(is_whole_json(state().file().parent_path() / "f"));
  write("f", whole + "\n");
  EXPECT_TRUE(is_whole_json(state().file().parent_path() / "f"));
  write("f", whole + "}");
  EXPECT_FALSE(is_whole_json(state().file().parent_path() / "f"));
}

TEST_F(chain_state, a_complete_file_is_left_alone_and_not_copied_before_anvil_accepts_it) {
  write("state.json", R"({"n":2})");
  write("state.good.json", R"({"n":1})");
  state().prepare();
  EXPECT_EQ(read("state.json"), R"({"n":2})");
  EXPECT_EQ(read("state.good.json"), R"({"n":1})");
}

TEST_F(chain_state, a_broken_file_is_replaced_by_the_last_good_copy) {
  write("state.good.json", R"({"n":1})");
  write("state.json", R"({"n":2,)");
  state().prepare();
  EXPECT_EQ(read("state.json"), R"({"n":1})");
  EXPECT_EQ(read("state.broken.json"), R"({"n":2,)");
}

TEST_F(chain_state, a_file_emptied_by_a_kill_is_broken_too) {
  write("state.good.json", R"({"n":1})");
  write("state.json", "");
  state().prepare();
  EXPECT_EQ(read("state.json"), R"({"n":1})");
}

TEST_F(chain_state, a_broken_file_without_a_copy_means_a_fresh_start) {
  write("state.json", "{");
  state().prepare();
  EXPECT_EQ(read("state.json"), "(none)");
  EXPECT_EQ(read("state.broken.json"), "{");
}

TEST_F(chain_state, a_removed_file_means_a_fresh_start) {
  write("state.good.json", R"({"n":1})");
  state().prepare();
  EXPECT_EQ(read("state.json"), "(none)");
}

TEST_F(chain_state, a_copy_that_anvil_refuses_too_is_not_tried_again) {
  write("state.json", R"({"n":2})");
  write("state.good.json", R"({"n":1})");
  auto guarded = state();
  guarded.set_aside();
  EXPECT_EQ(read("state.json"), R"({"n":1})");
  guarded.set_aside();
  EXPECT_EQ(read("state.json"), "(none)");
}

TEST_F(chain_state, only_a_complete_file_is_copied) {
  auto guarded = state();
  guarded.keep_copy();
  EXPECT_EQ(read("state.good.json"), "(none)");
  write("state.json", R"({"n":1})");
  guarded.keep_copy();
  EXPECT_EQ(read("state.good.json"), R"({"n":1})");
  write("state.json", R"({"n":2)");
  fs::last_write_time(guarded.file(), fs::file_time_type::clock::now() + std::chrono::seconds(1));
  guarded.keep_copy();
  EXPECT_EQ(read("state.good.json"), R"({"n":1})");
}

}  // namespace
}  // namespace fencepost
