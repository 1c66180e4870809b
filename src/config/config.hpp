// The configuration of a node: plain structs with their defaults, and the function that loads them.
//
// A value comes from the first of: a flag, the environment, the file, the default of the command (`up` has some), the
// default here. config/keys.cpp lists the keys, one line each; docs/configuration.md is the manual.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/secret.hpp"
#include "base/uint256.hpp"
#include "evm/finality_rule.hpp"
#include "identity/options.hpp"
#include "notify/options.hpp"
#include "outbox/nats/nats_options.hpp"
#include "outbox/webhook/options.hpp"
#include "runtime/log.hpp"
#include "timelock/options.hpp"
#include "transfer/options.hpp"
#include "tx/options.hpp"

namespace fencepost {

struct NodeConfig {
  std::string name;           // load_config fills in the host's name
  std::string advertise_url;  // empty: other nodes cannot forward to this one
};

enum class ListenMode { kEnabled, kPollOnly };

struct DatabaseConfig {
  Secret dsn;
  std::chrono::milliseconds connect_timeout = std::chrono::seconds{5};
  std::chrono::milliseconds statement_timeout = std::chrono::seconds{30};
  std::size_t shared_connections = 1;  // per event loop, pipelined
  std::size_t pool_size = 4;           // per event loop, exclusive
  std::size_t queue_limit = 4096;
  std::chrono::milliseconds acquire_timeout = std::chrono::seconds{5};
  ListenMode listen = ListenMode::kEnabled;
};

struct HttpConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  std::string public_url;            // empty: the address that the server listens on
  std::string tls_certificate_path;  // both paths, or neither: no TLS
  std::string tls_key_path;
  std::size_t max_header_bytes = 16 * 1024;
  std::size_t max_body_bytes = 1024 * 1024;
  std::size_t max_connections = 4096;
  std::chrono::milliseconds idle_timeout = std::chrono::seconds{60};
  std::chrono::milliseconds read_timeout = std::chrono::seconds{10};
  std::chrono::milliseconds write_timeout = std::chrono::seconds{30};
  std::uint32_t rate_limit_per_second = 1000;
  std::uint32_t rate_limit_burst = 2000;
};

struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;
  bool operator==(const ListenAddress&) const = default;
};

struct MetricsConfig {
  std::optional<ListenAddress> listen;  // none: /metrics is where everything else is
  bool require_key = false;
};

struct RuntimeConfig {
  std::size_t threads = 0;  // 0: one per core
  std::size_t cpu_threads = 1;
  std::chrono::milliseconds stop_timeout = std::chrono::seconds{20};
};

struct LogConfig {
  log::Level level = log::Level::kInfo;
  log::Format format = log::Format::kText;
  std::string file;  // empty: stderr
};

// The log of history and events (outbox/event_partitions.hpp).
struct EventsConfig {
  std::chrono::milliseconds retention = std::chrono::days{365};
};

// The fees of the policy `fixed`: a gas price, or cap and tip.
struct FixedFees {
  std::optional<Uint256> gas_price;
  std::optional<Uint256> max_fee_per_gas;
  std::optional<Uint256> max_priority_fee_per_gas;
};

enum class FeePolicyName { kDynamic, kFixed };

// The keys that exist for all chains together and for each chain. Do not use directly: see chain_options.
struct ChainTuning {
  evm::FinalityRule finality;
  tx::ChainOptions options;  // without signers and fees.fixed
  FeePolicyName fee_policy = FeePolicyName::kDynamic;
  FixedFees fixed_fees;
  timelock::ScannerOptions scanner;
  std::size_t batch_size = 100;  // JSON-RPC calls in one request
};

struct ChainConfig {
  std::string name;
  std::int64_t chain_id = 0;
  std::vector<Secret> rpc_urls;     // secret, because URLs often carry credentials
  std::vector<Secret> submit_urls;  // empty: transactions are sent to rpc_urls
  std::chrono::milliseconds poll_interval = std::chrono::seconds{1};
  std::string explorer_url;  // empty: mails have no links to an explorer
  ChainTuning tuning;
};

// The settings of one signer.
struct SignerConfig {
  std::string address;                   // lowercase, with 0x
  std::optional<std::int64_t> chain_id;  // none: on every chain
  tx::SignerOptions options;
};

// Where the keys of the signers are.
struct KeystoreConfig {
  std::string directory;  // empty: no key files
  Secret password;        // of every file in it
  std::vector<Secret> dev_keys;
};

struct Config {
  bool dev = false;  // allows plain keys, which are for development only
  NodeConfig node;
  DatabaseConfig database;
  HttpConfig http;
  MetricsConfig metrics;
  RuntimeConfig runtime;
  LogConfig log;
  EventsConfig events;
  identity::LoginOptions login;
  outbox::WebhookOptions webhooks;
  tx::TxOptions tx;
  tx::LeaseOptions lease;
  transfer::TransferOptions transfer;
  ChainTuning chain_defaults;  // defaults for each chain's entry; load_config copies them into it
  std::vector<ChainConfig> chains;
  std::vector<SignerConfig> signers;
  KeystoreConfig keystore;
  notify::EmailOptions email;
  outbox::NatsOptions nats;

  // Problems that did not stop load_config, one sentence each, for the user.
  std::vector<std::string> warnings;

  // Every key that has a value, as a file that `load_config` would read; secrets are masked as "***".
  std::string to_yaml() const;
};

struct ConfigFile {
  std::string name;  // for messages
  std::string text;
};

struct ConfigFlag {
  std::string option;  // as the user typed it, for messages: "--port"
  std::string path;    // "http.port"
  std::string value;
};

struct ConfigSources {
  std::optional<ConfigFile> file;
  std::map<std::string, std::string> environment;  // only FENCEPOST_* is read
  std::vector<ConfigFlag> flags;
  std::vector<ConfigFlag> defaults;   // of the command: below the file, above the defaults of the structs
  std::vector<std::string> required;  // keys that this command needs, e.g. "database.dsn"
  bool opens_keys = false;            // this command opens the files of keystore.directory: it needs their password
};

// kNotFound "no_config_file", kInvalid "bad_config_file" (not readable, or over 1 MiB).
Result<ConfigFile> read_config_file(const std::string& path);

std::map<std::string, std::string> process_environment();

// The configuration, or kInvalid "bad_config" whose message lists every problem on a line of its own, each with
// the file and line, variable or flag it comes from, the key and the reason. No message ever quotes a secret.
// Reads the files that `*_file` keys name.
Result<Config> load_config(const ConfigSources& sources);

// The options of a chain for the transaction manager: those of its entry, with its signers and its fixed fees. If a
// signer has an entry for this chain and one for every chain, each value of the former takes precedence.
tx::ChainOptions chain_options(const Config& config, const ChainConfig& chain);

}  // namespace fencepost
