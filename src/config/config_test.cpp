#include "config/config.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

using evm::FinalityRule;
using Environment = std::map<std::string, std::string>;
using Flags = std::vector<ConfigFlag>;

Result<Config> load(std::string yaml, Environment environment = {}, Flags flags = {}) {
  return load_config({.file = ConfigFile{"f.yaml", std::move(yaml)},
                      .environment = std::move(environment),
                      .flags = std::move(flags),
                      .required = {}});
}

Config loaded(std::string yaml, Environment environment = {}, Flags flags = {}) {
  auto config = load(std::move(yaml), std::move(environment), std::move(flags));
  if (!config) throw Exception(config.error());
  return std::move(*config);
}

// The problems, one per line, without the headline and the indent.
std::vector<std::string> problems(const Result<Config>& result) {
  std::vector<std::string> out;
  if (result) return out;
  EXPECT_EQ(result.error().code, "bad_config");
  std::istringstream in(result.error().message);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) out.push_back(line.substr(2));
  EXPECT_EQ(result.error().message.substr(0, result.error().message.find('\n')),
            fmt::format("{} problem{} in the configuration:", out.size(), out.size() == 1 ? "" : "s"));
  return out;
}

constexpr auto kFullFile = R"(
node:
  name: alpha
  advertise_url: http://10.0.0.1:8080
database:
  dsn: postgres://user:hunter2@db/fencepost
  connect_timeout: 3s
  listen: poll_only
http: { host: "::", port: 0, max_body_bytes: 2048 }
log: { level: debug, format: json, file: /var/log/fencepost.log }
chains:
  - name: mainnet
    chain_id: 1
    rpc_urls:
      - https://rpc.example.org/v3/hunter2
      - https://user:hunter2@other.example.org
    confirmations: { required: finalized }
  - name: dev
    chain_id: 31337
    rpc_urls: http://127.0.0.1:8545
    poll_interval: 250ms
    confirmations.required: 2
email:
  smtp_url: smtps://mail.example.org:465
  username: me
  password: hunter2
  from: no-reply@example.org
)";

TEST(config, an_empty_configuration_gives_the_defaults) {
  for (const auto& config : {load_config({}), load(""), load("# only a comment\n"), load("http:\nlog:\nchains:\n")}) {
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->http.port, 8080);
    EXPECT_EQ(config->http.host, "127.0.0.1");
    EXPECT_EQ(config->database.connect_timeout, 5s);
    EXPECT_TRUE(config->database.dsn.empty());
    EXPECT_EQ(config->log.level, log::Level::kInfo);
    EXPECT_FALSE(config->email.configured());
    EXPECT_TRUE(config->chains.empty());
    std::array<char, 256> host{};
    ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
    EXPECT_EQ(config->node.name, host.data());
  }
}

TEST(config, nats_takes_several_servers_and_never_shows_them) {
  const auto config = load_config({.file = ConfigFile{"f", "nats: {subject_prefix: a.b-c, replicas: 3}"},
                                   .environment = {{"FENCEPOST_NATS_URL", "nats://u:hunter2@x:4222, tls://y"}},
                                   .flags = {},
                                   .required = {}});
  ASSERT_TRUE(config.has_value()) << config.error().message;
  ASSERT_EQ(config->nats.urls.size(), 2U);
  EXPECT_EQ(config->nats.urls[0].reveal(), "nats://u:hunter2@x:4222");
  EXPECT_EQ(config->nats.urls[1].reveal(), "tls://y");
  EXPECT_EQ(config->nats.subject_prefix, "a.b-c");
  EXPECT_EQ(config->nats.stream, "FENCEPOST");
  EXPECT_EQ(config->to_yaml().find("hunter2"), std::string::npos);
  EXPECT_FALSE(loaded("").nats.configured());
}

TEST(config, metrics_listen_takes_an_address_of_each_kind) {
  EXPECT_EQ(loaded("").metrics.listen, std::nullopt);
  for (const auto& [text, listen] : {std::pair{"127.0.0.1:9464", ListenAddress{"127.0.0.1", 9464}},
                                     {"\"[::]:1\"", ListenAddress{"::", 1}},
                                     {"localhost:65535", ListenAddress{"localhost", 65535}}}) {
    const auto config = loaded(std::string("metrics: {listen: ") + text + "}");
    EXPECT_EQ(config.metrics.listen, listen) << text;
    EXPECT_FALSE(config.metrics.require_key);
  }
}

TEST(config, reads_every_section_of_a_file) {
  const auto config = loaded(kFullFile);
  EXPECT_EQ(config.node.name, "alpha");
  EXPECT_EQ(config.node.advertise_url, "http://10.0.0.1:8080");
  EXPECT_EQ(config.database.dsn.reveal(), "postgres://user:hunter2@db/fencepost");
  EXPECT_EQ(config.database.connect_timeout, 3s);
  EXPECT_EQ(config.database.listen, ListenMode::kPollOnly);
  EXPECT_EQ(config.http.host, "::");
  EXPECT_EQ(config.http.port, 0);
  EXPECT_EQ(config.http.max_body_bytes, 2048U);
  EXPECT_EQ(config.log.format, log::Format::kJson);
  ASSERT_EQ(config.chains.size(), 2U);
  EXPECT_EQ(config.chains[0].chain_id, 1);
  ASSERT_EQ(config.chains[0].rpc_urls.size(), 2U);
  EXPECT_EQ(config.chains[0].rpc_urls[1].reveal(), "https://user:hunter2@other.example.org");
  EXPECT_EQ(config.chains[0].tuning.finality, (FinalityRule{FinalityRule::Kind::kFinalized, 0}));
  EXPECT_EQ(config.chains[0].poll_interval, 1s);
  EXPECT_EQ(config.chains[1].tuning.finality, (FinalityRule{FinalityRule::Kind::kDepth, 2}));
  EXPECT_EQ(config.chains[1].rpc_urls.size(), 1U);
  EXPECT_EQ(config.email.transport, notify::TransportKind::kSmtp);
  EXPECT_EQ(config.email.password.reveal(), "hunter2");
}

TEST(config, mail_has_an_explicit_transport_or_the_one_that_its_server_implies) {
  EXPECT_FALSE(loaded("").email.configured());
  EXPECT_EQ(loaded("email: {smtp_url: smtp://x, from: a@b.c}").email.transport, notify::TransportKind::kSmtp);
  EXPECT_EQ(loaded("email: {smtp_url: smtp://x, from: a@b.c, transport: none}").email.transport,
            notify::TransportKind::kNone);
  const auto file = loaded("email: {transport: file, directory: d, from: a@B.c, operators: [x@y.z, x@Y.z]}").email;
  EXPECT_EQ(file.transport, notify::TransportKind::kFile);
  EXPECT_EQ(file.from, "a@b.c");
  EXPECT_EQ(file.operators, std::vector<std::string>{"x@y.z"});
}

TEST(config, a_flag_beats_the_environment_beats_the_file_beats_the_default) {
  const std::string yaml = "http: { port: 1001, idle_timeout: 11s, read_timeout: 12s }";
  const Environment environment{{"FENCEPOST_HTTP_PORT", "1002"}, {"FENCEPOST_HTTP_IDLE_TIMEOUT", "21s"}};
  const auto config = loaded(yaml, environment, {{"--port", "http.port", "1003"}});
  EXPECT_EQ(config.http.port, 1003);
  EXPECT_EQ(config.http.idle_timeout, 21s);
  EXPECT_EQ(config.http.read_timeout, 12s);
  EXPECT_EQ(config.http.write_timeout, 30s);
}

TEST(config, the_environment_alone_is_enough) {
  const auto config = load_config({.file = {},
                                   .environment = {{"FENCEPOST_DATABASE_DSN", "dbname=x"},
                                                   {"FENCEPOST_LOG_LEVEL", "warn"},
                                                   {"FENCEPOST_CONFIG", "elsewhere.yaml"},
                                                   {"FENCEPOST_TEST_ANYTHING", "1"},
                                                   {"PATH", "/bin"}},
                                   .flags = {},
                                   .required = {"database.dsn"}});
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->database.dsn.reveal(), "dbname=x");
  EXPECT_EQ(config->log.level, log::Level::kWarn);
}

TEST(config, the_environment_changes_and_extends_lists) {
  const auto config = loaded("chains: [{name: a, chain_id: 1, rpc_urls: [http://a]}]",
                             {{"FENCEPOST_CHAINS_0_RPC_URLS", "http://x:1, http://y:2"},
                              {"FENCEPOST_CHAINS_1_NAME", "b"},
                              {"FENCEPOST_CHAINS_1_CHAIN_ID", "2"},
                              {"FENCEPOST_CHAINS_1_RPC_URLS", "http://b"},
                              {"FENCEPOST_CHAINS_1_CONFIRMATIONS_REQUIRED", "safe"}});
  ASSERT_EQ(config.chains.size(), 2U);
  ASSERT_EQ(config.chains[0].rpc_urls.size(), 2U);
  EXPECT_EQ(config.chains[0].rpc_urls[0].reveal(), "http://x:1");
  EXPECT_EQ(config.chains[0].rpc_urls[1].reveal(), "http://y:2");
  EXPECT_EQ(config.chains[1].name, "b");
  EXPECT_EQ(config.chains[1].tuning.finality.kind, FinalityRule::Kind::kSafe);
}

TEST(config, each_mistake_in_a_file_is_named_with_its_line) {
  struct Case {
    std::string yaml;
    std::string problem;
  };
  const Case cases[] = {
      {"http:\n  port: 99999", "f.yaml:2: http.port: expected an integer from 0 to 65535, got \"99999\""},
      {"http:\n  port: 010", "f.yaml:2: http.port: expected an integer from 0 to 65535, got \"010\": leading zero"},
      {"http:\n  port: 0x50", "f.yaml:2: http.port: expected an integer from 0 to 65535, got \"0x50\""},
      {"http:\n  port: 8080.0", "f.yaml:2: http.port: expected an integer from 0 to 65535, got \"8080.0\""},
      {"http:\n  port: -1", "f.yaml:2: http.port: expected an integer from 0 to 65535, got \"-1\""},
      {"http:\n  port:", "f.yaml:2: http.port: has no value"},
      {"http:\n  port: ~", "f.yaml:2: http.port: has no value"},
      {"http:\n  port: [1]", "f.yaml:2: http.port: expected a single value, got a list"},
      {"http:\n  port: {a: 1}", "f.yaml:2: http.port: expected a single value, got a map"},
      {"http: 8080", "f.yaml:1: http: expected a map of keys, got a single value"},
      {"- http", "f.yaml:1: the file: expected a map of keys, got a list"},
      {"\n\nhtpp:\n  port: 1", "f.yaml:3: htpp: no such key; did you mean \"http\"?"},
      {"http:\n  prot: 1", "f.yaml:2: http.prot: no such key; did you mean \"port\"?"},
      {"http:\n  Port: 1", "f.yaml:2: http.Port: no such key; did you mean \"port\"?"},
      {"zebra: 1", "f.yaml:1: zebra: no such key"},
      {"http:\n  port: 1\n  host: x\n  port: 2", "f.yaml:4: http.port: is given twice; first at f.yaml:2"},
      {"http.port: 1\nhttp:\n  port: 2", "f.yaml:3: http.port: is given twice; first at f.yaml:1"},
      {"? [a]\n: 1", "f.yaml:1: expected a key, got a list"},
      {"\"a\\nb\": 1", "f.yaml:1: expected a key, got \"a\\nb\""},
      {"\"chains[0]\": {name: x}", "f.yaml:1: expected a key, got \"chains[0]\""},
      {"http:\n  port: 1\n bad", "f.yaml:3: not valid YAML: end of map not found"},
      {"a: 1\n---\nb: 2", "f.yaml:3: expected one YAML document, but a second one begins here"},
      {"log:\n  level: verbose", "f.yaml:2: log.level: expected debug, info, warn, error or off, got \"verbose\""},
      {"log: {file: \"a\\tb\"}", "f.yaml:1: log.file: expected text without control characters, got \"a\\tb\""},
      {"node: {name: " + std::string(65, 'n') + "}", "f.yaml:1: node.name: expected at most 64 bytes, got 65"},
      {"http:\n  idle_timeout: 60",
       "f.yaml:2: http.idle_timeout: expected a duration such as 250ms, 10s, 5m, 24h or 1d, got \"60\": "
       "the unit is missing"},
      {"http:\n  idle_timeout: 0s", "f.yaml:2: http.idle_timeout: expected a duration from 1ms to 1d, got \"0s\""},
      {"http:\n  idle_timeout: 2d", "f.yaml:2: http.idle_timeout: expected a duration from 1ms to 1d, got \"2d\""},
      {"node: {advertise_url: ftp://x}",
       "f.yaml:1: node.advertise_url: expected a URL that begins with http:// or https://"},
      {"node: {advertise_url: http://u:p@x}", "f.yaml:1: node.advertise_url: expected a URL without user and password"},
      {"node: {advertise_url: http://x:0}", "f.yaml:1: node.advertise_url: expected a port from 1 to 65535"},
      {"node: {advertise_url: http://x:70000}", "f.yaml:1: node.advertise_url: expected a port from 1 to 65535"},
      {"chains: {name: x}", "f.yaml:1: chains: expected a list, got a map"},
      {"chains:\n  - 5", "f.yaml:2: chains[0]: expected a map of keys, got a single value"},
      {"chains:\n  - {name: a, chain_id: 1, rpc_urls: [http://a]}\n  - name: b\n    chainid: 2\n    chain_id: 3\n"
       "    rpc_urls: [http://b]",
       "f.yaml:4: chains[1].chainid: no such key; did you mean \"chain_id\"?"},
      {"chains:\n  - {name: a, chain_id: 1, rpc_urls: [http://a]}\n  - {name: b, chain_id: 1, rpc_urls: [http://b]}",
       "f.yaml:3: chains[1].chain_id: must be unique, but chains[0] has the same value"},
      {"chains:\n  - {name: a, chain_id: 1, rpc_urls: [http://a]}\n  - {name: a, chain_id: 2, rpc_urls: [http://b]}",
       "f.yaml:3: chains[1].name: must be unique, but chains[0] has the same value"},
      {"chains:\n  - {name: a, chain_id: 1}",
       "f.yaml:2: chains[0].rpc_urls: is required; set it in the file or as FENCEPOST_CHAINS_0_RPC_URLS"},
      {"chains:\n  - {name: a, chain_id: 1, rpc_urls: []}",
       "f.yaml:2: chains[0].rpc_urls: expected a list of http:// or https:// URLs, got none"},
      {"chains:\n  - {name: a, chain_id: 1, rpc_urls: [http://a, ws://b]}",
       "f.yaml:2: chains[0].rpc_urls: expected a list of http:// or https:// URLs; number 2 is not one"},
      {"chains:\n  - {name: a, chain_id: 1, rpc_urls: [[http://a]]}",
       "f.yaml:2: chains[0].rpc_urls: expected a list of single values, got a list in it"},
      {"chains:\n  - {name: a, chain_id: 0, rpc_urls: [http://a]}",
       "f.yaml:2: chains[0].chain_id: expected an integer from 1 to 9223372036854775807, got \"0\""},
      {"chains:\n  - {name: a, chain_id: 1, rpc_urls: [http://a], confirmations: {required: soon}}",
       "f.yaml:2: chains[0].confirmations.required: expected an integer from 1 to 100000, safe or finalized, "
       "got \"soon\""},
      {"nats: {url: [nats://a, http://b]}",
       "f.yaml:1: nats.url: expected a list of nats:// or tls:// URLs; number 2 is not one"},
      {"nats: {url: nats://a, stream: a.b}",
       "f.yaml:1: nats.stream: expected letters, digits, - and _, at most 64 bytes, got \"a.b\""},
      {"nats: {url: nats://a, subject_prefix: a..b}",
       "f.yaml:1: nats.subject_prefix: expected letters, digits, - and _, with dots between parts, at most 128 bytes, "
       "got \"a..b\""},
      {"nats: {url: nats://a, subject_prefix: \"a.>\"}",
       "f.yaml:1: nats.subject_prefix: expected letters, digits, - and _, with dots between parts, at most 128 bytes, "
       "got \"a.>\""},
      {"nats: {tls_ca_path: x}", "f.yaml:1: nats.tls_ca_path: requires nats.url to be set too"},
      {"http: {tls_key_path: x}", "f.yaml:1: http.tls_key_path: requires http.tls_certificate_path to be set too"},
      {"http: {tls_certificate_path: x}",
       "f.yaml:1: http.tls_certificate_path: requires http.tls_key_path to be set too"},
      {"metrics: {listen: 9464}",
       "f.yaml:1: metrics.listen: expected an address and a port such as 127.0.0.1:9464 or [::]:9464, got \"9464\""},
      {"metrics: {listen: \"example.org:9464\"}",
       "f.yaml:1: metrics.listen: expected an address and a port such as 127.0.0.1:9464 or [::]:9464, got "
       "\"example.org:9464\""},
      {"metrics: {listen: \"::1:9464\"}",
       "f.yaml:1: metrics.listen: expected an address and a port such as 127.0.0.1:9464 or [::]:9464, got "
       "\"::1:9464\""},
      {"metrics: {listen: \"127.0.0.1:0\"}",
       "f.yaml:1: metrics.listen: expected an address and a port such as 127.0.0.1:9464 or [::]:9464, got "
       "\"127.0.0.1:0\""},
      {"metrics: {listen: \"127.0.0.1:8080\"}",
       "f.yaml:1: metrics.listen: is where the API listens (http.host, http.port); leave it out to have /metrics "
       "there"},
      {"metrics: {listen: \"0.0.0.0:8080\"}",
       "f.yaml:1: metrics.listen: is where the API listens (http.host, http.port); leave it out to have /metrics "
       "there"},
      {"{http: {tls_certificate_path: c, tls_key_path: k}, node: {advertise_url: \"http://node1:8080\"}}",
       "f.yaml:1: node.advertise_url: begins with http://, but the node speaks TLS: other nodes could not reach it"},
      {"nats: {url: nats://a, tls_key_path: x}",
       "f.yaml:1: nats.tls_key_path: requires nats.tls_certificate_path to be set too"},
      {"email: {smtp_url: http://x, from: a@b.c}",
       "f.yaml:1: email.smtp_url: expected a URL that begins with smtp:// or smtps://"},
      {"email: {smtp_url: smtp://u:p@x, from: a@b.c}",
       "f.yaml:1: email.smtp_url: expected a URL without user and password"},
      {"email: {smtp_url: smtp://x/y, from: a@b.c}",
       "f.yaml:1: email.smtp_url: expected a URL that begins with smtp:// or smtps:// with nothing after host and "
       "port"},
      {"email: {smtp_url: \"smtp://x:25\"}", "f.yaml:1: email.smtp_url: requires email.from to be set too"},
      {"email:\n  from: a@b.c", "f.yaml:2: email.from: requires email.smtp_url or email.transport to be set too"},
      {"email: {smtp_url: smtp://x, from: a@b.c, username: u}",
       "f.yaml:1: email.username: requires email.password to be set too"},
      {"email: {smtp_url: smtp://x, from: a@b.c, password: p}",
       "f.yaml:1: email.password: requires email.username to be set too"},
      {"email: {smtp_url: smtp://x, from: \"a@b\\r\\nRCPT TO:<c@d>\"}",
       "f.yaml:1: email.from: expected a mail address such as no-reply@example.org: the email address "
       "\"a@b\\r\\nRCPT TO:<c@d>\" has more than one @"},
      {"email: {transport: file, from: a@b.c}", "f.yaml:1: email.transport: requires email.directory to be set too"},
      {"email: {transport: smtp, from: a@b.c}", "f.yaml:1: email.transport: requires email.smtp_url to be set too"},
      {"email: {transport: file, directory: x}", "f.yaml:1: email.transport: requires email.from to be set too"},
      {"email: {operators: [a@b.c]}",
       "f.yaml:1: email.operators: requires email.smtp_url or email.transport to be set too"},
      {"email: {transport: file, directory: x, from: a@b.c, operators: [a@b.c, x]}",
       "f.yaml:1: email.operators: expected a mail address such as no-reply@example.org: the email address \"x\" has "
       "no @: write it as name@example.org"},
  };
  for (const auto& c : cases) EXPECT_THAT(problems(load(c.yaml)), ElementsAre(c.problem)) << c.yaml;
}

TEST(config, each_mistake_in_the_environment_or_a_flag_is_named) {
  struct Case {
    Environment environment;
    Flags flags;
    std::string problem;
  };
  const Case cases[] = {
      {{{"FENCEPOST_HTTP_PORT", "x"}},
       {},
       "FENCEPOST_HTTP_PORT: http.port: expected an integer from 0 to 65535, got \"x\""},
      {{{"FENCEPOST_CHAINS_2_NAME", "x"}},
       {},
       "FENCEPOST_CHAINS_2_NAME: chains[2].name: leaves a gap: the next entry is chains[0]"},
      {{{"FENCEPOST_DATABASE_DSN", ""}}, {}, "FENCEPOST_DATABASE_DSN: database.dsn: is empty"},
      {{}, {{"--port", "http.port", "http"}}, "--port: http.port: expected an integer from 0 to 65535, got \"http\""},
      {{}, {{"--port", "http.prot", "1"}}, "--port: http.prot: no such key"},
      {{}, {{"--port", "http.port", "1"}, {"-p", "http.port", "2"}}, "-p: http.port: is given twice; first at --port"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(problems(load("", c.environment, c.flags)), ElementsAre(c.problem));
  }
}

TEST(config, an_unknown_variable_is_a_warning_with_the_nearest_name) {
  const auto config = loaded("", {{"FENCEPOST_HTTP_PROT", "1"},
                                  {"FENCEPOST_CHAINS_0_RPCURLS", "1"},
                                  {"FENCEPOST_CHAINS_99999999999999999999_NAME", "x"},
                                  {"FENCEPOST_ZEBRA", "x"}});
  EXPECT_EQ(config.http.port, 8080);
  EXPECT_TRUE(config.chains.empty());
  EXPECT_THAT(config.warnings,
              ElementsAre("FENCEPOST_CHAINS_0_RPCURLS: no such key, ignored; did you mean FENCEPOST_CHAINS_0_RPC_URLS?",
                          "FENCEPOST_CHAINS_99999999999999999999_NAME: no such key, ignored",
                          "FENCEPOST_HTTP_PROT: no such key, ignored; did you mean FENCEPOST_HTTP_PORT?",
                          "FENCEPOST_ZEBRA: no such key, ignored"));
}

TEST(config, a_mistyped_variable_is_shown_with_the_missing_key) {
  const auto result =
      load_config({.environment = {{"FENCEPOST_DATABSE_DSN", "dbname=x"}}, .required = {"database.dsn"}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "1 problem in the configuration:\n"
            "  database.dsn: is required; set it in the file or as FENCEPOST_DATABASE_DSN\n"
            "  warning: FENCEPOST_DATABSE_DSN: no such key, ignored; did you mean FENCEPOST_DATABASE_DSN?");
}

TEST(config, variables_of_fencepost_that_are_not_keys_give_no_warning) {
  const auto config = loaded("", {{"FENCEPOST_CONFIG", "x"},
                                  {"FENCEPOST_URL", "http://x"},
                                  {"FENCEPOST_API_KEY", "x"},
                                  {"FENCEPOST_PROGRAM_NAME", "./fp"},
                                  {"FENCEPOST_TEST_KILL_AT", "x"},
                                  {"HOME", "/"}});
  EXPECT_THAT(config.warnings, testing::IsEmpty());
}

TEST(config, a_default_of_the_command_is_beaten_by_the_file_and_the_environment) {
  const auto window = [](std::string yaml, Environment environment) {
    const auto config = load_config({.file = ConfigFile{"f.yaml", std::move(yaml)},
                                     .environment = std::move(environment),
                                     .defaults = {{"up", "tx.max_in_flight", "16"}}});
    EXPECT_TRUE(config) << config.error().message;
    return chain_options(*config, config->chains.at(0)).max_in_flight;
  };
  const std::string chain = "chains: [{name: a, chain_id: 1, rpc_urls: [http://a]}]\n";
  EXPECT_EQ(window(chain, {}), 16);
  EXPECT_EQ(window(chain + "tx: {max_in_flight: 5}\n", {}), 5);
  EXPECT_EQ(window(chain + "tx: {max_in_flight: 5}\n", {{"FENCEPOST_TX_MAX_IN_FLIGHT", "100"}}), 100);
  EXPECT_EQ(window("chains: [{name: a, chain_id: 1, rpc_urls: [http://a], max_in_flight: 7}]\n", {}), 7);
}

TEST(config, all_problems_are_reported_together_in_the_order_of_the_file) {
  const auto result = load_config({.file = ConfigFile{"f.yaml",
                                                      "htpp: {}\n"
                                                      "log:\n"
                                                      "  level: loud\n"
                                                      "http:\n"
                                                      "  port: 70000\n"
                                                      "  hots: x\n"},
                                   .environment = {{"FENCEPOST_RUNTIME_THREADS", "many"}},
                                   .flags = {{"--format", "log.format", "xml"}},
                                   .required = {"database.dsn"}});
  EXPECT_THAT(
      problems(result),
      ElementsAre("f.yaml:1: htpp: no such key; did you mean \"http\"?",
                  "f.yaml:3: log.level: expected debug, info, warn, error or off, got \"loud\"",
                  "f.yaml:5: http.port: expected an integer from 0 to 65535, got \"70000\"",
                  "f.yaml:6: http.hots: no such key; did you mean \"host\"?",
                  "FENCEPOST_RUNTIME_THREADS: runtime.threads: expected an integer from 0 to 1024, got \"many\"",
                  "--format: log.format: expected text or json, got \"xml\"",
                  "database.dsn: is required; set it in the file or as FENCEPOST_DATABASE_DSN"));
}

TEST(config, the_event_pools_own_variable_is_read) {
  const auto pool = [](std::map<std::string, std::string> environment) {
    const auto config = load_config({.environment = std::move(environment)});
    return config && config->transfer.event_pool_enabled;
  };
  EXPECT_FALSE(pool({}));
  EXPECT_TRUE(pool({{"TRANSFER_EVENT_POOL_ENABLED", "true"}}));
  EXPECT_FALSE(pool({{"TRANSFER_EVENT_POOL_ENABLED", "true"}, {"FENCEPOST_TRANSFER_EVENT_POOL_ENABLED", "false"}}));
  const auto bad = load_config({.environment = {{"TRANSFER_EVENT_POOL_ENABLED", "perhaps"}}});
  EXPECT_THAT(problems(bad), ElementsAre(HasSubstr("TRANSFER_EVENT_POOL_ENABLED: transfer.event_pool_enabled: ")));
}

TEST(config, too_many_entries_are_refused) {
  std::string yaml = "chains:\n";
  for (int i = 1; i <= 65; ++i) yaml += fmt::format("  - {{name: c{0}, chain_id: {0}, rpc_urls: [http://a]}}\n", i);
  EXPECT_THAT(problems(load(yaml)), ElementsAre("f.yaml:1: chains: expected at most 64 entries, got 65"));
}

TEST(config, hostile_yaml_neither_hangs_nor_crashes) {
  std::string laughs = "a: &a [x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c <= 'j'; ++c)
    laughs += fmt::format("{0}: &{0} [*{1},*{1},*{1},*{1},*{1},*{1},*{1},*{1}]\n", c, static_cast<char>(c - 1));
  EXPECT_EQ(problems(load(laughs)).size(), 10U);
  EXPECT_EQ(problems(load(std::string(100'000, '['))).size(), 1U);
  EXPECT_EQ(problems(load("http: &h\n  port: *h\n")).size(), 1U);
  EXPECT_EQ(problems(load("http: {port: *nowhere}\n")).size(), 1U);
}

}  // namespace
}  // namespace fencepost
