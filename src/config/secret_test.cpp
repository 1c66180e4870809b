// Secrets: from files of their own, and never in anything that is printed.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/support/temp_dir.hpp"

#include "config/config.hpp"

namespace fencepost {
namespace {

using testing::HasSubstr;
using testing::Not;

class ConfigSecretTest : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) const {
    const auto path = directory_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string path(const std::string& name) const { return directory_ / name; }

  static Result<Config> load(std::string yaml, std::map<std::string, std::string> environment = {}) {
    return load_config({.file = ConfigFile{"f.yaml", std::move(yaml)},
                        .environment = std::move(environment),
                        .flags = {},
                        .required = {}});
  }

 private:
  test::TempDir directory_{"config"};
};

std::string message(const Result<Config>& result) {
  return result ? "no error" : result.error().message;
}

TEST_F(ConfigSecretTest, comes_from_a_file_without_its_last_line_break) {
  for (const std::string_view content : {"s3cret", "s3cret\n", "s3cret\r\n"}) {
    const auto file = write("dsn", content);
    const auto config = load("database:\n  dsn_file: " + file);
    ASSERT_TRUE(config.has_value()) << message(config);
    EXPECT_EQ(config->database.dsn.reveal(), "s3cret");
    EXPECT_EQ(load("", {{"FENCEPOST_DATABASE_DSN_FILE", file}})->database.dsn.reveal(), "s3cret");
  }
}

TEST_F(ConfigSecretTest, a_list_comes_from_a_file_line_by_line) {
  const auto file = write("urls", "http://a\nhttp://b\n");
  const auto config = load("chains: [{name: a, chain_id: 1, rpc_urls_file: " + file + "}]");
  ASSERT_TRUE(config.has_value()) << message(config);
  ASSERT_EQ(config->chains[0].rpc_urls.size(), 2U);
  EXPECT_EQ(config->chains[0].rpc_urls[1].reveal(), "http://b");
}

TEST_F(ConfigSecretTest, given_both_ways_is_an_error_within_one_source) {
  const auto file = write("dsn", "from-file");
  EXPECT_EQ(message(load("database:\n  dsn: x\n  dsn_file: " + file)),
            "1 problem in the configuration:\n"
            "  f.yaml:3: database.dsn_file: is given together with database.dsn; choose one");
  EXPECT_EQ(message(load("", {{"FENCEPOST_DATABASE_DSN", "x"}, {"FENCEPOST_DATABASE_DSN_FILE", file}})),
            "1 problem in the configuration:\n"
            "  FENCEPOST_DATABASE_DSN_FILE: database.dsn_file: is given together with database.dsn; choose one");
  EXPECT_EQ(load("database: {dsn: x}", {{"FENCEPOST_DATABASE_DSN_FILE", file}})->database.dsn.reveal(), "from-file");
  EXPECT_EQ(load("database: {dsn_file: /nowhere}", {{"FENCEPOST_DATABASE_DSN", "x"}})->database.dsn.reveal(), "x");
}

TEST_F(ConfigSecretTest, an_unusable_file_is_named) {
  const auto problem = [&](const std::string& file) {
    return message(load("database:\n  dsn_file: " + file))
        .substr(std::string("1 problem in the configuration:\n  ").size());
  };
  EXPECT_EQ(problem(path("none")),
            "f.yaml:2: database.dsn_file: cannot read \"" + path("none") + "\": No such file or directory");
  EXPECT_EQ(problem(path("")), "f.yaml:2: database.dsn_file: cannot read \"" + path("") + "\": Is a directory");
  EXPECT_EQ(problem(write("big", std::string(70'000, 'x'))),
            "f.yaml:2: database.dsn_file: cannot read \"" + path("big") + "\": File too large");
  EXPECT_EQ(problem(write("empty", "\n")), "f.yaml:2: database.dsn: is empty");
  EXPECT_EQ(problem(write("lines", "hunter2\nhunter2\n")),
            "f.yaml:2: database.dsn: expected one line without control characters");
}

TEST_F(ConfigSecretTest, only_secrets_have_a_file_form) {
  EXPECT_THAT(message(load("http: {port_file: x}")), HasSubstr("http.port_file: no such key"));
}

TEST_F(ConfigSecretTest, never_shows_in_an_error) {
  const auto file = write("secret", "hunter2\x01");
  for (const std::string& yaml : {
           std::string("database: {dsn: \"hunter2\\n\"}"),
           std::string("database: {dsn: [hunter2]}"),
           std::string("database: {dsn: {hunter2x: hunter2}}"),
           "database: {dsn_file: " + file + "}",
           std::string("database: {dsn: hunter2, dsn: hunter2}"),
           std::string("email: {password: \"hunter2\\t\"}"),
           std::string("email: {password: hunter2}"),
           std::string("email: {smtp_url: \"smtp://me:hunter2@x\", from: a@b.c}"),
           std::string("node: {advertise_url: \"https://me:hunter2@x\"}"),
           std::string("chains: [{name: a, chain_id: 1, rpc_urls: [\"hunter2\"]}]"),
           std::string("chains: [{name: a, chain_id: 1, rpc_urls: [\"wss://x/hunter2\"]}]"),
           std::string("chains: [{name: a, chain_id: 1, rpc_urls: {hunter2: hunter2}}]"),
       }) {
    const auto result = load(yaml);
    ASSERT_FALSE(result.has_value()) << yaml;
    EXPECT_THAT(result.error().to_string(), Not(HasSubstr("hunter2"))) << yaml;
  }
  const auto result = load("", {{"FENCEPOST_DATABASE_DSN", "hunter2\n"}, {"FENCEPOST_CHAINS_0_RPC_URLS", "hunter2"}});
  EXPECT_THAT(message(result), Not(HasSubstr("hunter2")));
}

TEST_F(ConfigSecretTest, is_masked_when_printed) {
  const auto config = load(
      "database: {dsn: hunter2}\n"
      "email: {smtp_url: smtp://x, from: a@b.c, username: u, password: hunter2}\n"
      "chains: [{name: a, chain_id: 1, rpc_urls: [\"http://hunter2\", \"http://x/hunter2\"]}]\n");
  ASSERT_TRUE(config.has_value()) << message(config);
  const auto yaml = config->to_yaml();
  EXPECT_THAT(yaml, Not(HasSubstr("hunter2")));
  EXPECT_THAT(yaml, HasSubstr("dsn: \"***\""));
  EXPECT_THAT(yaml, HasSubstr("password: \"***\""));
}

TEST_F(ConfigSecretTest, the_config_file_itself_is_read_whole_or_refused) {
  EXPECT_EQ(read_config_file(write("c.yaml", "http: {port: 1}\n"))->text, "http: {port: 1}\n");
  EXPECT_EQ(read_config_file(write("c.yaml", ""))->text, "");
  EXPECT_EQ(read_config_file(path("none")).error().code, "no_config_file");
  EXPECT_EQ(read_config_file(path("none")).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(read_config_file(path("")).error().code, "bad_config_file");
  EXPECT_EQ(read_config_file(write("big", std::string((1 << 20) + 1, '#'))).error().code, "bad_config_file");
  EXPECT_TRUE(read_config_file(write("fits", std::string(1 << 20, '#'))).has_value());
}

}  // namespace
}  // namespace fencepost
