#include "config/keys.hpp"

#include <fstream>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/source_dir.hpp"

#include "config/kinds.hpp"
#include "config/settings.hpp"

namespace fencepost::config {
namespace {

using testing::IsEmpty;

Config with_one_of_each() {
  Config config;
  for (const auto& section : list_sections()) section.resize(config, 1);
  return config;
}

std::vector<Key> every_key() {
  auto out = keys();
  for (const auto& section : list_sections()) {
    for (auto& key : section.keys(0)) out.push_back(std::move(key));
  }
  return out;
}

TEST(config_keys, paths_become_environment_names) {
  EXPECT_EQ(environment_name("lease.duration"), "FENCEPOST_LEASE_DURATION");
  EXPECT_EQ(environment_name("pg.pool.size"), "FENCEPOST_PG_POOL_SIZE");
  EXPECT_EQ(environment_name("chains[12].rpc_urls"), "FENCEPOST_CHAINS_12_RPC_URLS");
}

TEST(config_keys, no_two_keys_share_an_environment_name) {
  std::set<std::string> names;
  for (const auto& key : every_key()) {
    EXPECT_TRUE(names.insert(environment_name(key.path)).second) << key.path;
    if (key.secret) {
      EXPECT_TRUE(names.insert(environment_name(key.path + std::string(kFileSuffix))).second) << key.path;
    }
    EXPECT_FALSE(key.path.ends_with(kFileSuffix)) << key.path << " would look like the file form of a secret";
  }
}

TEST(config_keys, the_printed_value_of_a_key_can_be_read_again) {
  auto config = with_one_of_each();
  for (const auto& key : every_key()) {
    const auto before = key.get(config);
    if (before.empty() || before.front().empty() || key.path == "chains[0].chain_id") continue;
    const auto set = key.set(config, before);
    ASSERT_TRUE(set.has_value()) << key.path << ": " << set.error().message;
    EXPECT_EQ(key.get(config), before) << key.path;
  }
}

TEST(config_keys, each_key_has_a_member_of_its_own) {
  // Setting one key must change only the text that this key prints: this finds lines copied within the table.
  const std::vector<std::string> samples{"7",
                                         "3",
                                         "7ms",
                                         "2s",
                                         "90d",
                                         std::string(64, '1'),
                                         "0x00000000000000000000000000000000000000aa",
                                         "text2",
                                         "http://x",
                                         "smtp://x",
                                         "nats://x",
                                         "a@b.c",
                                         "127.0.0.1:1",
                                         "30s",
                                         "file",
                                         "finalized",
                                         "json",
                                         "poll_only",
                                         "warn",
                                         "9999",
                                         "true",
                                         "false",
                                         "latest",
                                         "fixed",
                                         "legacy"};
  for (const auto& key : every_key()) {
    auto config = with_one_of_each();
    const auto before = config;
    const auto changed = [&] {
      for (const auto& sample : samples) {
        if (key.set(config, {sample}) && key.get(config) != key.get(before)) return true;
      }
      return false;
    }();
    ASSERT_TRUE(changed) << key.path << " took none of the samples";
    for (const auto& other : every_key()) {
      if (other.path != key.path)
        EXPECT_EQ(other.get(config), other.get(before)) << key.path << " changed " << other.path;
    }
  }
}

TEST(config_keys, an_inherited_key_has_the_same_kind_and_default) {
  const auto config = with_one_of_each();
  std::map<std::string, Key> by_path;
  for (const auto& key : keys()) by_path.emplace(key.path, key);
  std::size_t inheriting = 0;
  for (const auto& key : every_key()) {
    if (key.inherits.empty()) continue;
    ++inheriting;
    const auto other = by_path.find(key.inherits);
    ASSERT_NE(other, by_path.end()) << key.path << " inherits " << key.inherits;
    EXPECT_EQ(other->second.type, key.type) << key.path;
    EXPECT_EQ(other->second.get(config), key.get(config)) << key.path;
  }
  EXPECT_GT(inheriting, 0U);
}

TEST(config_keys, a_printed_configuration_loads_as_the_same) {
  const std::string yaml =
      "node: {name: \"null\"}\n"
      "http: {port: 99, host: \"::\", idle_timeout: 90s}\n"
      "log: {file: \"a: b # c\", level: off}\n"
      "lease: {duration: 20s}\n"
      "fees: {policy: fixed, fixed.gas_price: 3gwei}\n"
      "stuck: {after: 7m}\n"
      "rpc: {denied_methods: []}\n"
      "signers: [{address: \"0x00000000000000000000000000000000000000aa\", shared: true}]\n";
  const auto first = load_config({.file = ConfigFile{"f", yaml}, .environment = {}, .flags = {}, .required = {}});
  ASSERT_TRUE(first.has_value()) << first.error().message;
  const auto printed = first->to_yaml();
  const auto second = load_config({.file = ConfigFile{"p", printed}, .environment = {}, .flags = {}, .required = {}});
  ASSERT_TRUE(second.has_value()) << second.error().message << printed;
  for (const auto& key : keys()) EXPECT_EQ(key.get(*first), key.get(*second)) << key.path;
  EXPECT_EQ(second->node.name, "null");
  EXPECT_EQ(second->log.file, "a: b # c");
  EXPECT_EQ(second->to_yaml(), printed);
}

TEST(config_kinds, booleans_are_true_or_false_and_nothing_else) {
  EXPECT_EQ(Boolean{}.parse("true"), true);
  EXPECT_EQ(Boolean{}.parse("false"), false);
  for (const auto* text : {"yes", "True", "1", "on", ""}) EXPECT_FALSE(Boolean{}.parse(text).has_value()) << text;
  EXPECT_EQ(Boolean{}.print(true), "true");
}

TEST(config_kinds, numbers_are_plain_decimal_digits) {
  const Number<std::int32_t> kind{-100, 100};
  EXPECT_EQ(kind.parse("-7"), -7);
  EXPECT_EQ(kind.parse("0"), 0);
  for (const auto* text :
       {"", "-", "+1", "007", "-07", "00", "1e1", "1.0", " 1", "1 ", "101", "-101", "0x1", "9999999999"}) {
    EXPECT_FALSE(kind.parse(text).has_value()) << text;
  }
}

TEST(config_settings, lists_are_split_at_commas_and_lines) {
  EXPECT_EQ(split_list(" a , b\r\nc,,"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_THAT(split_list(" , "), IsEmpty());
  EXPECT_THAT(split_list(""), IsEmpty());
}

// One row per key in docs/configuration.md: | `key` | default | takes | what it does |
std::set<std::string> rows_of_the_table() {
  std::set<std::string> out;
  const auto defaults = with_one_of_each();
  for (const auto& key : every_key()) {
    const auto value = key.get(defaults);
    const auto name = pattern_of(key.path);
    const bool none = value.empty() || value.front().empty() || name == "chains[].chain_id";
    const auto initial = !key.inherits.empty() ? fmt::format("that of `{}`", key.inherits)
                         : none                ? "none"
                                               : fmt::format("`{}`", fmt::join(value, "`, `"));
    out.insert(fmt::format("| `{}` | {} | {} | {} |", name, initial, key.type, key.doc));
  }
  return out;
}

std::ifstream open_the_docs() {
  return std::ifstream(test::source_dir() / "docs/configuration.md");
}

TEST(config_docs, list_every_key_with_its_type_and_default) {
  auto in = open_the_docs();
  ASSERT_TRUE(in);
  std::set<std::string> documented;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| `")) documented.insert(line);
  }
  const auto expected = rows_of_the_table();
  for (const auto& row : expected)
    EXPECT_TRUE(documented.contains(row)) << "keys missing in docs/configuration.md:\n" << row;
  for (const auto& row : documented)
    EXPECT_TRUE(expected.contains(row)) << "rows of docs/configuration.md that match no key:\n" << row;
}

TEST(config_docs, the_example_loads) {
  auto in = open_the_docs();
  ASSERT_TRUE(in);
  std::string yaml;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = line == "```yaml";
    } else if (inside) {
      yaml += line + "\n";
    }
  }
  // The example's secret files do not exist, so these lines are replaced by the secrets themselves.
  for (const auto& [from, to] : {std::pair{"dsn_file: /run/secrets/dsn", "dsn: dbname=x"},
                                 std::pair{"password_file: /run/secrets/smtp", "password: x"},
                                 std::pair{"password_file: /run/secrets/keystore", "password: x"},
                                 std::pair{"rpc_urls_file: /run/secrets/mainnet_rpc", "rpc_urls: [https://x]"}}) {
    const auto at = yaml.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    yaml.replace(at, std::string_view(from).size(), to);
  }
  const auto config =
      load_config({.file = ConfigFile{"docs", yaml}, .environment = {}, .flags = {}, .required = {"database.dsn"}});
  ASSERT_TRUE(config.has_value()) << config.error().message << yaml;
  EXPECT_EQ(config->chains.size(), 2U);
  EXPECT_TRUE(config->email.configured());
}

}  // namespace
}  // namespace fencepost::config
