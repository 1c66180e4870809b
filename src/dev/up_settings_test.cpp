#include "dev/up_settings.hpp"

#include <filesystem>
#include <fstream>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "runtime/child_process.hpp"
#include "runtime/leftover_process.hpp"
#include "tests/support/temp_dir.hpp"

#include "dev/up_json.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using testing::HasSubstr;

// A process in the place of `up`, with an environment and a working directory of its own.
class ConfigOfUp : public testing::Test {
 protected:
  ConfigOfUp() {
    fs::create_directory(working_directory());
    auto child = ChildProcess::start({.argv = {"/usr/bin/sleep", "1000"},
                                      .env = {{"FENCEPOST_HTTP_PORT=9003", "FENCEPOST_KEYSTORE_DIRECTORY=keys"}},
                                      .cwd = working_directory()});
    if (!child) throw Exception(child.error());
    process_.emplace(std::move(*child));
  }
  ~ConfigOfUp() override { process_->stop_blocking({{SIGKILL, {}}}); }

  fs::path working_directory() const { return dir_ / "work"; }
  std::int64_t start_ticks() const { return process_info(process_->pid()).value().start_ticks; }
  void write_up_json(std::optional<std::int64_t> start_ticks) const {
    const json::object dsn{{"option", "--dsn"}, {"path", "database.dsn"}, {"value", "dbname=x"}};
    json::object up{
        {"pid", process_->pid()},
        {"settings", {{"file", ""}, {"overrides", json::array{dsn}}, {"defaults", json::array{}}, {"devChain", false}}},
        {"config", "as it was"}};
    if (start_ticks) up["startTicks"] = *start_ticks;
    std::ofstream(up_json_file(dir_.path())) << json::serialize(up);
  }

  test::TempDir dir_{"up_settings"};
  std::optional<ChildProcess> process_;
};

TEST_F(ConfigOfUp, has_the_environment_and_the_directory_of_its_process) {
  write_up_json(start_ticks());
  const auto before = fs::current_path();
  const auto config = config_of_up(dir_.path());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->http.port, 9003);
  EXPECT_EQ(config->keystore.directory, working_directory() / "keys");
  EXPECT_EQ(fs::current_path(), before);
  EXPECT_EQ(yaml_of_up(dir_.path()), "as it was");
}

TEST_F(ConfigOfUp, is_not_read_from_another_process_that_has_got_the_pid) {
  for (const auto& other_start : {std::optional(start_ticks() - 1), std::optional<std::int64_t>()}) {
    write_up_json(other_start);
    const auto config = config_of_up(dir_.path());
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().code, "not_up");
    EXPECT_THAT(config.error().message, HasSubstr("up.json is left over"));
    const auto yaml = yaml_of_up(dir_.path());
    ASSERT_FALSE(yaml);
    EXPECT_EQ(yaml.error().code, "not_up");
  }
}

TEST_F(ConfigOfUp, names_the_working_directory_of_up_if_it_was_removed) {
  write_up_json(start_ticks());
  fs::remove(working_directory());
  const auto before = fs::current_path();
  const auto config = config_of_up(dir_.path());
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, "up_directory_unusable");
  EXPECT_THAT(config.error().message, HasSubstr("/work (deleted)\": No such file or directory"));
  EXPECT_EQ(fs::current_path(), before);
}

TEST_F(ConfigOfUp, is_read_also_in_a_working_directory_that_was_removed) {
  write_up_json(start_ticks());
  const auto before = fs::current_path();
  fs::create_directory(dir_ / "here");
  fs::current_path(dir_ / "here");
  fs::remove(dir_ / "here");
  const auto config = config_of_up(dir_.path());
  fs::current_path(before);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->keystore.directory, working_directory() / "keys");
}

}  // namespace
}  // namespace fencepost
