// The transaction manager's keys: what all chains share, what one overrides, and what must hold between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

using Environment = std::map<std::string, std::string>;

constexpr auto kSigner = "0x00000000000000000000000000000000000000aa";
constexpr auto kChains = R"(
chains:
  - {name: a, chain_id: 1, rpc_urls: [http://a]}
  - {name: b, chain_id: 2, rpc_urls: [http://b]}
)";

Result<Config> load(std::string yaml, Environment environment = {}) {
  return load_config({.file = ConfigFile{"f.yaml", std::move(yaml)},
                      .environment = std::move(environment),
                      .flags = {},
                      .required = {}});
}

Config loaded(std::string yaml, Environment environment = {}) {
  auto config = load(std::move(yaml), std::move(environment));
  if (!config) throw Exception(config.error());
  return std::move(*config);
}

std::string problem(const Result<Config>& result) {
  if (result) return "no problem";
  const std::string_view headline = "1 problem in the configuration:\n  ";
  if (!result.error().message.starts_with(headline)) return result.error().message;
  return result.error().message.substr(headline.size());
}

TEST(config_tx, defaults_are_those_of_the_design) {
  const auto config = loaded(kChains);
  EXPECT_EQ(config.lease.times.duration, 10s);
  EXPECT_EQ(config.lease.renew_interval, 3s);
  EXPECT_EQ(config.lease.times.clock_skew_allowance, 1s);
  EXPECT_EQ(config.lease.idle_release, 60s);
  EXPECT_TRUE(config.tx.request_id_required);
  EXPECT_TRUE(config.tx.forwarding);
  EXPECT_EQ(config.tx.rpc.sign_wait, 20s);
  EXPECT_FALSE(config.dev);
  const auto options = chain_options(config, config.chains[0]);
  EXPECT_TRUE(options.nonce.chain_query_enabled);
  EXPECT_EQ(options.nonce.chain_query_mode, tx::NonceQuery::kPending);
  EXPECT_EQ(options.nonce.nonce_state_timeout, 30s);
  EXPECT_TRUE(options.resubmit.enabled);
  EXPECT_EQ(options.resubmit.interval, 60s);
  EXPECT_EQ(config.chains[0].tuning.finality, (evm::FinalityRule{evm::FinalityRule::Kind::kDepth, 20}));
  EXPECT_FALSE(options.confirmations.progress);
  EXPECT_EQ(options.confirmations.stale_receipt_timeout, 60s);
  EXPECT_EQ(options.confirmations.receipt_workers, 10U);
  EXPECT_EQ(options.stuck_after, 10min);
  EXPECT_EQ(options.max_in_flight, 1);
  EXPECT_FALSE(options.shared);
  EXPECT_EQ(options.fees.base_fee_multiplier, 4U);
  EXPECT_FALSE(options.fees.fixed.has_value());
  EXPECT_TRUE(options.signers.empty());
}

TEST(config_tx, nested_keys_come_from_the_environment_too) {
  const auto config = loaded(kChains, {{"FENCEPOST_LEASE_DURATION", "30s"},
                                       {"FENCEPOST_NONCE_CHAIN_QUERY_MODE", "latest"},
                                       {"FENCEPOST_CONFIRMATIONS_REQUIRED", "safe"},
                                       {"FENCEPOST_CHAINS_1_CONFIRMATIONS_STALE_RECEIPT_TIMEOUT", "5s"},
                                       {"FENCEPOST_CHAINS_1_FEES_MAX_TIP", "2gwei"},
                                       {"FENCEPOST_TX_MAX_IN_FLIGHT", "0"},
                                       {"FENCEPOST_SIGNERS_0_ADDRESS", kSigner},
                                       {"FENCEPOST_URL", "http://x"},
                                       {"FENCEPOST_API_KEY", "fp_x"}});
  EXPECT_EQ(config.lease.times.duration, 30s);
  const auto a = chain_options(config, config.chains[0]);
  const auto b = chain_options(config, config.chains[1]);
  EXPECT_EQ(a.nonce.chain_query_mode, tx::NonceQuery::kLatest);
  EXPECT_EQ(config.chains[0].tuning.finality.kind, evm::FinalityRule::Kind::kSafe);
  EXPECT_EQ(a.confirmations.stale_receipt_timeout, 60s);
  EXPECT_EQ(b.confirmations.stale_receipt_timeout, 5s);
  EXPECT_EQ(b.fees.max_tip, Uint256(2'000'000'000));
  EXPECT_EQ(b.max_in_flight, 0);
  EXPECT_TRUE(b.signers.contains(kSigner));
}

TEST(config_tx, a_chain_overrides_what_all_chains_share) {
  const auto config = loaded(R"(
confirmations: {required: 5, progress: true}
stuck: {after: 1m}
tx: {max_in_flight: 8, shared: true}
chains:
  - {name: a, chain_id: 1, rpc_urls: [http://a]}
  - name: b
    chain_id: 2
    rpc_urls: [http://b]
    confirmations: {required: finalized}
    stuck.after: 2m
    resubmit: {enabled: false, interval: 5s}
    nonce: {chain_query: {enabled: false}, nonce_state_timeout: 1s}
    max_in_flight: 0
    shared: false
)");
  const auto a = chain_options(config, config.chains[0]);
  EXPECT_EQ(config.chains[0].tuning.finality, (evm::FinalityRule{evm::FinalityRule::Kind::kDepth, 5}));
  EXPECT_TRUE(a.confirmations.progress);
  EXPECT_EQ(a.stuck_after, 1min);
  EXPECT_TRUE(a.resubmit.enabled);
  EXPECT_EQ(a.max_in_flight, 8);
  EXPECT_TRUE(a.shared);
  const auto b = chain_options(config, config.chains[1]);
  EXPECT_EQ(config.chains[1].tuning.finality.kind, evm::FinalityRule::Kind::kFinalized);
  EXPECT_TRUE(b.confirmations.progress);
  EXPECT_EQ(b.stuck_after, 2min);
  EXPECT_FALSE(b.resubmit.enabled);
  EXPECT_EQ(b.resubmit.interval, 5s);
  EXPECT_FALSE(b.nonce.chain_query_enabled);
  EXPECT_EQ(b.nonce.nonce_state_timeout, 1s);
  EXPECT_EQ(b.max_in_flight, 0);
  EXPECT_FALSE(b.shared);
}

TEST(config_tx, a_signer_may_differ_on_all_chains_or_on_one) {
  const std::string entries =
      "  - {address: \"0x00000000000000000000000000000000000000AA\", max_in_flight: 4, chain_id: 2}\n"
      "  - {address: \"0x00000000000000000000000000000000000000aa\", max_in_flight: 2, shared: true}\n";
  const auto config = loaded(kChains + ("signers:\n" + entries));
  const auto a = chain_options(config, config.chains[0]);
  EXPECT_EQ(a.window_of(kSigner), 2);
  EXPECT_TRUE(a.is_shared(kSigner));
  const auto b = chain_options(config, config.chains[1]);
  EXPECT_EQ(b.window_of(kSigner), 4);
  EXPECT_TRUE(b.is_shared(kSigner));
  EXPECT_EQ(b.window_of("0x00000000000000000000000000000000000000bb"), 1);
}

TEST(config_tx, fixed_fees_are_a_price_or_cap_and_tip) {
  const auto config = loaded(R"(
fees: {policy: fixed, fixed: {gas_price: 30gwei}}
chains:
  - {name: a, chain_id: 1, rpc_urls: [http://a]}
  - name: b
    chain_id: 2
    rpc_urls: [http://b]
    fees: {fixed.max_fee_per_gas: 100, fixed.max_priority_fee_per_gas: 7}
  - {name: c, chain_id: 3, rpc_urls: [http://c], fees: {policy: dynamic}}
)");
  ASSERT_EQ(config.chains.size(), 3U);
  const auto fees_of = [&](std::size_t i) { return chain_options(config, config.chains[i]).fees.fixed; };
  EXPECT_EQ(fees_of(0), evm::Fees(evm::LegacyFees{30'000'000'000}));
  EXPECT_EQ(fees_of(1), evm::Fees(evm::DynamicFees{100, 7}));
  EXPECT_EQ(fees_of(2), std::nullopt);
  const auto printed = config.to_yaml();
  const auto again = load(printed, {{"FENCEPOST_CHAINS_0_RPC_URLS", "http://a"},  // masked in print
                                    {"FENCEPOST_CHAINS_1_RPC_URLS", "http://b"},
                                    {"FENCEPOST_CHAINS_2_RPC_URLS", "http://c"}});
  EXPECT_EQ(problem(again), "no problem") << printed;
}

TEST(config_tx, each_contradiction_is_named) {
  struct Case {
    std::string yaml;
    std::string problem;
  };
  const std::string renew_rule = ": lease.renew_interval must be less than half of lease.duration";
  const std::string fixed =
      "fixed needs either fees.fixed.gas_price, or fees.fixed.max_fee_per_gas and fees.fixed.max_priority_fee_per_gas";
  const std::string chain = "chains:\n  - {name: a, chain_id: 1, rpc_urls: [http://a]";
  const std::string signer = std::string("{address: \"") + kSigner + "\"";
  const Case cases[] = {
      {"lease: {renew_interval: 5s}",
       "f.yaml:1: lease.renew_interval: renewing every 5s is not often enough for a lease of 10s" + renew_rule},
      {"lease:\n  duration: 6s",
       "f.yaml:2: lease.duration: renewing every 3s is not often enough for a lease of 6s" + renew_rule},
      {"lease: {renew_interval: 0s}",
       "f.yaml:1: lease.renew_interval: expected a duration from 10ms to 30m, got \"0s\""},
      {"keystore:\n  dev_keys: [\"" + std::string(64, '1') + "\"]",
       "f.yaml:2: keystore.dev_keys: needs dev: true; plain keys are for development only, store other keys in key "
       "files"},
      {"dev: true\nkeystore: {dev_keys: [\"" + std::string(64, '1') + "\", \"hunter2\"]}",
       "f.yaml:2: keystore.dev_keys: expected a list of private keys of 64 hex digits; number 2 is not one"},
      {"rpc: {denied_methods: [debug_*, \"a b\"]}",
       "f.yaml:1: rpc.denied_methods: expected a list of method names, each with an optional * at the end, got \"a "
       "b\""},
      {"fees: {policy: fixed}", "f.yaml:1: fees.policy: " + fixed},
      {"fees: {policy: fixed, fixed.max_fee_per_gas: 1}", "f.yaml:1: fees.policy: " + fixed},
      {"fees: {policy: fixed, fixed: {gas_price: 1, max_fee_per_gas: 1, max_priority_fee_per_gas: 1}}",
       "f.yaml:1: fees.policy: " + fixed},
      {"fees: {policy: fixed, fixed: {max_fee_per_gas: 1, max_priority_fee_per_gas: 2}}",
       "f.yaml:1: fees.fixed.max_priority_fee_per_gas: is above fees.fixed.max_fee_per_gas"},
      {"fees: {fixed.gas_price: 1}", "f.yaml:1: fees.fixed.gas_price: has no effect: needs fees.policy: fixed"},
      {"fees: {min_tip: 2gwei, max_tip: 1gwei}", "f.yaml:1: fees.min_tip: fees.min_tip is above fees.max_tip"},
      {chain + ", fees: {policy: fixed}}", "f.yaml:2: chains[0].fees.policy: " + fixed},
      {chain + ", fees: {fixed.gas_price: 1}}",
       "f.yaml:2: chains[0].fees.fixed.gas_price: has no effect: needs fees.policy: fixed"},
      {chain + ", fees: {max_tip: 0}}", "f.yaml:2: chains[0].fees.max_tip: fees.min_tip is above fees.max_tip"},
      {"fees: {max_tip: 1.5gwei}",
       "f.yaml:1: fees.max_tip: expected an amount of wei, or of gwei such as 30gwei, got \"1.5gwei\""},
      {"fees: {max_tip: " + std::string(69, '9') + "gwei}",
       "f.yaml:1: fees.max_tip: expected an amount of wei, or of gwei such as 30gwei, got \"" + std::string(64, '9') +
           "…\""},
      {"signers:\n  - {shared: true}",
       "f.yaml:2: signers[0].address: is required; set it in the file or as FENCEPOST_SIGNERS_0_ADDRESS"},
      {"signers: [{address: \"0x1\"}]", "f.yaml:1: signers[0].address: expected 0x and 40 hex digits, got \"0x1\""},
      {"signers: [" + signer + ", chain_id: 5}]",
       "f.yaml:1: signers[0].chain_id: no entry of chains has the chain_id 5"},
      {"signers:\n  - " + signer + "}\n  - " + signer + "}",
       "f.yaml:3: signers[1].address: must be unique per chain, but signers[0] has the same address for the same "
       "chain"},
      {"tx: {max_in_flight: -1}", "f.yaml:1: tx.max_in_flight: expected an integer from 0 to 100000, got \"-1\""},
      {"nonce: {chain_query: {mode: newest}}",
       "f.yaml:1: nonce.chain_query.mode: expected pending or latest, got \"newest\""},
  };
  for (const auto& c : cases) EXPECT_EQ(problem(load(c.yaml)), c.problem) << c.yaml;
}

TEST(config_tx, a_directory_of_key_files_needs_its_password_where_they_are_opened) {
  const auto opened = [](std::string yaml, Environment environment = {}) {
    return problem(load_config({.file = ConfigFile{"f.yaml", std::move(yaml)},
                                .environment = std::move(environment),
                                .flags = {},
                                .required = {},
                                .opens_keys = true}));
  };
  const std::string directory = "keystore:\n  directory: keys\n";
  const std::string problem_text =
      "keystore.directory: needs the password of its key files: set keystore.password_file, or "
      "FENCEPOST_KEYSTORE_PASSWORD";
  EXPECT_EQ(opened(directory), "f.yaml:2: " + problem_text);
  EXPECT_EQ(opened("", {{"FENCEPOST_KEYSTORE_DIRECTORY", "keys"}}), "FENCEPOST_KEYSTORE_DIRECTORY: " + problem_text);
  EXPECT_EQ(opened(directory, {{"FENCEPOST_KEYSTORE_PASSWORD", "hunter2"}}), "no problem");
  EXPECT_EQ(opened(directory + "  password: hunter2"), "no problem");
  EXPECT_EQ(opened(directory + "  password: \"\""), "f.yaml:3: keystore.password: is empty");
  EXPECT_THAT(opened(directory + "  password_file: /nowhere"),
              HasSubstr("f.yaml:3: keystore.password_file: cannot read"));
  EXPECT_EQ(opened("dev: true"), "no problem");
  EXPECT_EQ(problem(load(directory)), "no problem") << "a command that does not open key files needs no password";
}

TEST(config_tx, private_keys_and_the_password_are_never_shown) {
  const std::string key(64, '7');
  const auto config = loaded("dev: true\nkeystore: {directory: keys, password: hunter2, dev_keys: [\"" + key + "\"]}");
  ASSERT_EQ(config.keystore.dev_keys.size(), 1U);
  EXPECT_EQ(config.keystore.dev_keys[0].reveal(), key);
  EXPECT_EQ(config.keystore.password.reveal(), "hunter2");
  const auto yaml = config.to_yaml();
  EXPECT_THAT(yaml, Not(HasSubstr(key)));
  EXPECT_THAT(yaml, Not(HasSubstr("hunter2")));
  EXPECT_THAT(yaml, HasSubstr("directory: keys"));
}

}  // namespace
}  // namespace fencepost
