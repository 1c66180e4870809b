#include "tests/support/tx_cluster.hpp"

#include <charconv>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "evm/keys/dev_accounts.hpp"
#include "http/client.hpp"
#include "runtime/gather.hpp"
#include "runtime/read_file.hpp"
#include "runtime/runtime.hpp"
#include "tests/support/event_schema.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/process.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr std::size_t kConnections = 64;

// Like eventually, for conditions whose check costs a process or a connection.
template <class Condition>
bool patiently(Condition condition, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    ::poll(nullptr, 0, 50);
  }
  return true;
}

std::string config_text(const TxNode::Setup& setup, const TxSettings& settings, std::uint16_t port) {
  std::vector<std::string> keys;
  if (settings.only_keys) {
    for (const auto& key : *settings.only_keys) keys.push_back(fmt::format("\"{}\"", key));
  } else {
    for (const auto& account : evm::dev_accounts()) keys.push_back(fmt::format("\"{}\"", account.private_key));
  }
  for (const auto& key : settings.more_keys) keys.push_back(fmt::format("\"{}\"", key));
  std::vector<std::string> urls{setup.rpc_url};
  urls.insert(urls.end(), settings.more_rpc_urls.begin(), settings.more_rpc_urls.end());
  return fmt::format(
      R"(dev: true
node: {{name: {name}, advertise_url: "http://127.0.0.1:{port}"}}
database: {{dsn: "{dsn}"}}
http: {{port: {port}, rate_limit_per_second: 1000000, rate_limit_burst: 1000000}}
keystore: {{dev_keys: [{keys}]}}
tx: {{forwarding: {forwarding}, forward_timeout: {forward_timeout}ms, request_id_required: {id_required}}}
transfer: {{expiry_interval: 2s}}
lease: {{duration: {duration}ms, renew_interval: {renew}ms, clock_skew_allowance: {skew}ms, idle_release: {idle}ms}}
chains:
  - name: anvil
    chain_id: {chain_id}
    rpc_urls: ["{rpc_urls}"]
    poll_interval: 100ms
    max_in_flight: {window}
    shared: {shared}
    confirmations: {{required: {required}, progress: {progress}, stale_receipt_timeout: {stale}ms}}
    resubmit: {{enabled: {resubmits}, interval: {resubmit}ms}}
    stuck: {{after: {stuck}ms}}
    nonce: {{nonce_state_timeout: {nonce_state}ms, chain_query: {{enabled: {chain_query}}}}}
    fees: {fees}
{more}
)",
      fmt::arg("name", setup.name), fmt::arg("port", port), fmt::arg("dsn", setup.dsn),
      fmt::arg("keys", fmt::join(keys, ", ")), fmt::arg("duration", settings.lease_duration.count()),
      fmt::arg("renew", settings.renew_interval.count()), fmt::arg("skew", settings.clock_skew_allowance.count()),
      fmt::arg("idle", settings.idle_release.count()), fmt::arg("chain_query", settings.chain_query),
      fmt::arg("chain_id", settings.chain_id), fmt::arg("rpc_urls", fmt::join(urls, "\", \"")),
      fmt::arg("window", settings.max_in_flight), fmt::arg("shared", settings.shared),
      fmt::arg("required", settings.confirmations), fmt::arg("progress", settings.progress),
      fmt::arg("stale", settings.stale_receipt_timeout.count()), fmt::arg("resubmits", settings.resubmit),
      fmt::arg("resubmit", settings.resubmit_interval.count()), fmt::arg("stuck", settings.stuck_after.count()),
      fmt::arg("nonce_state", settings.nonce_state_timeout.count()), fmt::arg("forwarding", settings.forwarding),
      fmt::arg("forward_timeout", settings.forward_timeout.count()),
      fmt::arg("id_required", settings.request_id_required), fmt::arg("fees", settings.fees),
      fmt::arg("more", settings.more));
}

std::int64_t from_quantity(const json::value& value) {
  const std::string text(value.as_string());
  std::int64_t number = 0;
  const auto [end, ec] = std::from_chars(text.data() + 2, text.data() + text.size(), number, 16);
  if (ec != std::errc()) throw Exception(internal("test_chain", "not a number of 63 bits: " + text));
  return number;
}

awaitable<Answer> send_one(std::shared_ptr<http::Client> client, Ask ask) {
  http::ClientRequest request{.method = ask.method, .url = ask.url, .headers = ask.headers, .body = ask.body};
  if (!ask.key.empty()) request.headers.emplace_back("Authorization", "Bearer " + ask.key);
  if (!ask.body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  auto response = co_await client->send(std::move(request));
  if (!response) co_return Answer{0, response.error().to_string(), {}};
  co_return Answer{response->status, std::move(response->body), std::move(response->headers)};
}

awaitable<std::vector<Answer>> send_all(std::vector<Ask> asks, std::chrono::milliseconds timeout) {
  const auto executor = co_await this_executor();
  const auto client =
      std::make_shared<http::Client>(executor, http::ClientOptions{.connect_timeout = 5s,
                                                                   .total_timeout = timeout,
                                                                   .max_connections_per_origin = kConnections,
                                                                   .max_waiting_per_origin = asks.size() + 1});
  std::vector<awaitable<Answer>> tasks;
  tasks.reserve(asks.size());
  for (auto& ask : asks) tasks.push_back(send_one(client, std::move(ask)));
  co_return co_await gather(std::move(tasks));
}

}  // namespace

TxNode::TxNode(Setup setup, const TxSettings& settings)
    : setup_(std::move(setup)),
      config_(setup_.dir / (setup_.name + ".yaml")),
      output_(setup_.dir / (setup_.name + ".log")),
      port_(free_port()) {
  configure(settings);
}

void TxNode::configure(const TxSettings& settings, const std::string& rpc_url) {
  if (!rpc_url.empty()) setup_.rpc_url = rpc_url;
  std::ofstream(config_) << config_text(setup_, settings, port_);
}

TxNode::~TxNode() {
  if (running()) kill();
}

void TxNode::launch(const std::vector<std::string>& env) {
  child_.reset();
  auto child = ChildProcess::start({.argv = {fencepost_program(), "serve", "--config", config_.string()},
                                    .env = environment_with(env),
                                    .out = Output::file(output_),
                                    .err = Output::same_as_out(),
                                    .death_signal = SIGKILL});
  if (!child) throw Exception(child.error());
  child_ = std::move(*child);
}

void TxNode::start(const std::vector<std::string>& env) {
  launch(env);
  await_ready();
}

void TxNode::await_ready() {
  const bool ready = patiently([&] { return !running() || ask({.url = url("/readyz")}).status == 200; }, 60s);
  if (!ready || !running()) throw Exception(unavailable("node_failed", "the node does not start:\n" + output()));
}

void TxNode::signal(int number) {
  child_->signal(number);
}

void TxNode::resume() {
  // Reads "pid (name) state …". A signal that arrives before the process has stopped would be lost.
  const auto stat = fmt::format("/proc/{}/stat", child_->pid());
  const bool stopped = eventually([&] {
    const auto text = read_file(stat);
    const auto name_end = text.rfind(')');
    return name_end != std::string::npos && text.substr(name_end + 2, 1) == "T";
  });
  if (!stopped) throw Exception(internal("node_not_stopped", "the node has not stopped; its output:\n" + output()));
  signal(SIGCONT);
}

void TxNode::kill() {
  child_->stop_blocking({{SIGKILL, 0s}});
}

ExitStatus TxNode::stop() {
  return child_->stop_blocking({{SIGTERM, 0s}, {SIGKILL, 40s}});
}

bool TxNode::dies() {
  return patiently([&] { return !running(); }, 30s);
}

std::string TxNode::url(const std::string& path) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

std::string TxNode::output() const {
  return read_file(output_);
}

double TxNode::metric(const std::string& name) const {
  return metric_of(url(""), name);
}

TxCluster::TxCluster(TxClusterOptions options) : options_(std::move(options)) {
  if (options_.dsn.empty()) database_.emplace(Template::kMigrated);
  dsn_ = database_ ? database_->dsn() : options_.dsn;
  anvil_.emplace(options_.anvil);
  if (options_.second_rewritten) second_rewriter_.emplace(anvil_->url());
  if (options_.second_endpoint) {
    options_.settings.more_rpc_urls.push_back(second_rewriter_ ? second_rewriter_->url() : anvil_->url());
  }
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    TxNode::Setup setup{.name = fmt::format("node{}", i), .dsn = dsn_, .rpc_url = anvil_->url(), .dir = dir_.path()};
    if (!options_.rpc_urls.empty()) setup.rpc_url = options_.rpc_urls.at(i);
    if (options_.proxied) {
      database_proxies_.push_back(std::make_unique<TcpProxy>(server_socket()));
      chain_proxies_.push_back(std::make_unique<TcpProxy>("127.0.0.1", anvil_->port()));
      setup.dsn = through_port(dsn_, database_proxies_.back()->port());
      setup.rpc_url = fmt::format("http://127.0.0.1:{}", chain_proxies_.back()->port());
    }
    if (options_.rewritten) {
      chain_rewriters_.push_back(std::make_unique<RpcRewriter>(setup.rpc_url));
      setup.rpc_url = chain_rewriters_.back()->url();
    }
    auto settings = options_.settings;
    if (!options_.node_keys.empty()) settings.only_keys = options_.node_keys.at(i);
    nodes_.push_back(std::make_unique<TxNode>(std::move(setup), settings));
  }
  if (!database_) fencepost({"migrate", "--dsn", dsn_});
  const auto made = fencepost({"apikey",        "create",  "--dsn",          dsn_,      "--json",           "--label",
                               "test",          "--scope", "tx:read",        "--scope", "tx:write",         "--scope",
                               "tx:operate",    "--scope", "transfer:write", "--scope", "transfer:operate", "--scope",
                               "timelock:read", "--scope", "timelock:write", "--scope", "mail:read"});
  if (made.status.code != 0) throw Exception(unavailable("no_api_key", made.out + made.err));
  key_ = std::string(json::parse(made.out).at("key").as_string());
  if (!options_.start) return;
  for (auto& node : nodes_) node->launch();
  for (auto& node : nodes_) node->await_ready();
}

TxCluster::~TxCluster() {
  if (!database_ || options_.own_events) return;
  try {
    EXPECT_EQ(problems_of_log(dsn_), std::vector<std::string>{});
  } catch (const std::exception& e) {
    ADD_FAILURE() << "the log could not be read: " << e.what();
  }
}

Ask TxCluster::create_ask(std::size_t node, const json::object& body) const {
  return {"POST", nodes_.at(node)->url("/api/v1/tx"), key_, json::serialize(body)};
}

std::string TxCluster::create(std::size_t node, const json::object& body) {
  const auto answer = ask(create_ask(node, body));
  if (answer.status != 202 && answer.status != 200) {
    throw Exception(internal("create_failed", fmt::format("{} {}\n{}", answer.status, answer.body, describe())));
  }
  return std::string(answer.json().at("txId").as_string());
}

std::string TxCluster::create_by_retrying(std::size_t node, const json::object& body) {
  Answer answer;
  const auto accepted = [&] {
    answer = ask(create_ask(node, body));
    if (answer.status == 200 || answer.status == 202) return true;
    const bool passes = answer.status == 0 || answer.status == 503 || answer.code() == "not_leader";
    if (!passes) throw Exception(internal("create_failed", fmt::format("{} {}", answer.status, answer.body)));
    return false;
  };
  if (!patiently(accepted, 60s)) {
    throw Exception(internal("create_failed", fmt::format("{} {}\n{}", answer.status, answer.body, describe())));
  }
  return std::string(answer.json().at("txId").as_string());
}

Answer TxCluster::get(std::size_t node, const std::string& path) const {
  return ask({.url = nodes_.at(node)->url(path), .key = key_});
}

Answer TxCluster::post(std::size_t node, const std::string& path, const json::object& body) const {
  return ask({"POST", nodes_.at(node)->url(path), key_, json::serialize(body)});
}

std::string TxCluster::sql(const std::string& query) const {
  return exec_sql(dsn_, query);
}

bool TxCluster::sql_becomes(const std::string& query, const std::string& wanted,
                            std::chrono::milliseconds patience) const {
  return patiently([&] { return sql(query) == wanted; }, patience);
}

std::string TxCluster::column(const std::string& tx_id, const std::string& expression) const {
  return sql(fmt::format("SELECT {} FROM tx_view WHERE tx_id = '{}'", expression, tx_id));
}

bool TxCluster::becomes(const std::string& tx_id, const std::string& expression, const std::string& wanted,
                        std::chrono::milliseconds patience) const {
  return patiently([&] { return column(tx_id, expression) == wanted; }, patience);
}

bool TxCluster::all_confirmed(std::chrono::milliseconds patience) const {
  return sql_becomes("SELECT count(*) FROM tx_view WHERE state <> 'CONFIRMED'", "0", patience);
}

std::optional<std::size_t> TxCluster::leader_of(const std::string& address) const {
  // A node's id is its name and an id that is new at each start.
  const auto owner = sql(fmt::format(
      "SELECT owner_node FROM signer_lease WHERE signer = '{}' AND expires_at > clock_timestamp()", address));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (owner.starts_with(fmt::format("node{}", i))) return i;
  }
  return std::nullopt;
}

json::value TxCluster::rpc(const std::string& method, json::array params) const {
  const json::object request{{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}};
  const auto answer = ask({"POST", anvil_->url(), "", json::serialize(request)});
  const auto document = answer.status == 200 ? answer.json() : json::value(json::object());
  const auto* result = document.as_object().if_contains("result");
  if (result == nullptr) throw Exception(internal("test_chain", fmt::format("{}: {}", method, answer.body)));
  return *result;
}

std::int64_t TxCluster::head() const {
  return from_quantity(rpc("eth_blockNumber"));
}

std::int64_t TxCluster::mined_count(const std::string& address) const {
  return from_quantity(rpc("eth_getTransactionCount", {address, "latest"}));
}

std::int64_t TxCluster::balance(const std::string& address) const {
  return from_quantity(rpc("eth_getBalance", {address, "latest"}));
}

std::string TxCluster::describe() const {
  std::string out = "\nstates: " + sql("SELECT string_agg(state || ' ' || n, ', ') FROM (SELECT state, count(*) AS n "
                                       "FROM tx_view GROUP BY state) AS s");
  out += "\nopen: " + sql("SELECT jsonb_pretty(jsonb_agg(t)) FROM (SELECT tx_id, nonce, state, sub_state, "
                          "error_message, retry_count, tx_hash, receipt_block, next_resubmit_at, clock_timestamp() "
                          "FROM tx_view WHERE state NOT IN ('CONFIRMED', 'FAILED_FINAL') ORDER BY nonce LIMIT 5) "
                          "AS t");
  out += "\nleases: " + sql("SELECT jsonb_agg(t) FROM (SELECT *, clock_timestamp() FROM signer_lease) AS t");
  out += "\ncursors: " + sql("SELECT jsonb_agg(t) FROM (SELECT * FROM signer_nonce_cursor) AS t");
  for (const auto& node : nodes_) {
    const auto text = node->output();
    out +=
        fmt::format("\n--- {}\n{}", node->url(""), text.substr(text.size() - std::min<std::size_t>(text.size(), 8000)));
  }
  return out;
}

std::string signer(std::size_t index) {
  return std::string(evm::dev_accounts()[index].address);
}

std::string signer_key(std::size_t index) {
  return std::string(evm::dev_accounts()[index].private_key);
}

std::string recipient(std::uint32_t number) {
  return fmt::format("0x00000000000000000000000000000f{:010x}", number);
}

json::object transfer(const std::string& from, const std::string& request_id, std::int64_t value,
                      const std::string& to) {
  return {{"signer", from},
          {"requestId", request_id},
          {"payload", {{"to", to}, {"value", std::to_string(value)}, {"gas", 21000}}}};
}

std::vector<Answer> ask_all(std::vector<Ask> asks, std::chrono::milliseconds timeout) {
  return run_blocking(send_all(std::move(asks), timeout));
}

}  // namespace fencepost::test
