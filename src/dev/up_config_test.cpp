#include "dev/up_config.hpp"

#include <gtest/gtest.h>

namespace fencepost {
namespace {

using Environment = std::map<std::string, std::string>;

const UpParts kParts{.dsn = "dbname=up",
                     .chain_url = "http://127.0.0.1:8545",
                     .chain_id = 31337,
                     .log_file = "/data/fencepost.log",
                     .port = std::nullopt};

Config config_of(const Environment& environment, const std::string& yaml = "", const UpParts& parts = kParts) {
  const auto from = up_config("", parts);
  auto config = load_config({.file = ConfigFile{"f.yaml", yaml},
                             .environment = environment,
                             .flags = from.overrides,
                             .defaults = from.defaults,
                             .required = {"database.dsn"}});
  if (!config) throw Exception(config.error());
  return std::move(*config);
}

const ChainConfig& dev_chain(const Config& config) {
  EXPECT_EQ(config.chains.size(), 1U);
  return config.chains.at(0);
}

TEST(up_config, has_defaults_for_development) {
  const auto config = config_of({});
  EXPECT_EQ(config.log.file, "/data/fencepost.log");
  const auto& chain = dev_chain(config);
  EXPECT_EQ(chain.chain_id, 31337);
  EXPECT_EQ(chain.tuning.options.max_in_flight, 16);
  EXPECT_EQ(chain.tuning.finality.depth, 2U);
  EXPECT_TRUE(chain.tuning.options.shared);
}

TEST(up_config, the_environment_beats_the_file_beats_these_defaults) {
  const std::string yaml = "tx: {max_in_flight: 5, shared: false}\nconfirmations: {required: 7}\n";
  const auto file_config = config_of({}, yaml);
  const auto& by_file = dev_chain(file_config).tuning;
  EXPECT_EQ(by_file.options.max_in_flight, 5);
  EXPECT_EQ(by_file.finality.depth, 7U);
  EXPECT_FALSE(by_file.options.shared);
  const auto config = config_of({{"FENCEPOST_TX_MAX_IN_FLIGHT", "100"}, {"FENCEPOST_LOG_FILE", "/x"}}, yaml);
  EXPECT_EQ(config.log.file, "/x");
  EXPECT_EQ(dev_chain(config).tuning.options.max_in_flight, 100);
}

TEST(up_config, a_flag_beats_the_environment) {
  auto parts = kParts;
  EXPECT_EQ(config_of({{"FENCEPOST_HTTP_PORT", "9001"}}).http.port, 9001);
  parts.port = 9002;
  EXPECT_EQ(config_of({{"FENCEPOST_HTTP_PORT", "9001"}}, "", parts).http.port, 9002);
}

TEST(up_config, the_database_is_the_one_that_up_starts) {
  const auto config = config_of({{"FENCEPOST_DATABASE_DSN", "dbname=other"}}, "database: {dsn: dbname=third}");
  EXPECT_EQ(config.database.dsn.reveal(), "dbname=up");
}

TEST(up_config, a_chain_that_the_user_configures_has_the_general_defaults) {
  auto parts = kParts;
  parts.chain_url = std::nullopt;
  const auto config = config_of({}, "chains: [{name: a, chain_id: 1, rpc_urls: [http://a]}]", parts);
  const auto& chain = dev_chain(config);
  EXPECT_EQ(chain.chain_id, 1);
  EXPECT_EQ(chain.tuning.options.max_in_flight, tx::ChainOptions().max_in_flight);
  EXPECT_FALSE(chain.tuning.options.shared);
}

}  // namespace
}  // namespace fencepost
