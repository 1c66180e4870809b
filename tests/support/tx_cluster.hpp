// Several real nodes that share one database and one chain, for tests of the transaction manager as a whole.
//
//   TxCluster cluster({.nodes = 2});
//   const auto id = cluster.create(0, transfer(signer(0), "first", 1));
//   ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
//
// Each node is a process. A test can stop, kill and restart it. With `proxied`, a test can also cut it off from the
// database or from the chain.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "runtime/child_process.hpp"
#include "tests/support/anvil.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/rpc_rewriter.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {

// The part of a node's configuration that tests change. The defaults have short timeouts, so that tests are short.
struct TxSettings {
  std::int64_t max_in_flight = 16;
  bool shared = false;
  std::string confirmations = "2";
  bool progress = false;
  std::chrono::milliseconds stale_receipt_timeout{2'000};
  std::chrono::milliseconds resubmit_interval{2'000};
  bool resubmit = true;
  std::chrono::milliseconds stuck_after{600'000};
  std::chrono::milliseconds nonce_state_timeout{30'000};
  bool chain_query = true;
  std::chrono::milliseconds lease_duration{2'000};
  std::chrono::milliseconds renew_interval{500};
  std::chrono::milliseconds clock_skew_allowance{200};
  std::chrono::milliseconds idle_release{60'000};
  bool forwarding = true;
  std::chrono::milliseconds forward_timeout{2'000};
  bool request_id_required = true;
  std::int64_t chain_id = 31337;                           // anvil's
  std::optional<std::vector<std::string>> only_keys = {};  // private keys instead of anvil's
  std::string fees = "{}";                                 // YAML
  std::vector<std::string> more_keys = {};                 // private keys in addition to anvil's
  std::vector<std::string> more_rpc_urls = {};             // endpoints after the first, for every node
  std::string more = {};                                   // YAML with more sections
};

// One `fencepost serve`.
class TxNode {
 public:
  struct Setup {
    std::string name;
    std::string dsn;
    std::string rpc_url;
    std::filesystem::path dir;
  };
  TxNode(Setup setup, const TxSettings& settings);
  ~TxNode();  // SIGKILL; tests of an orderly stop call `stop`

  // `env` is added to our environment. `start` returns when the node is ready. If the node does not become ready,
  // `start` throws with its output. `launch` returns at once.
  void start(const std::vector<std::string>& env = {});
  void launch(const std::vector<std::string>& env = {});
  void await_ready();
  void signal(int number);
  void resume();      // after it has stopped, by SIGSTOP or at a test point
  void kill();        // SIGKILL, and waits for its end
  ExitStatus stop();  // SIGTERM, and waits for its end
  bool dies();        // true if it ends by itself within kPatience
  bool running() { return child_ && child_->running(); }

  std::string url(const std::string& path) const;
  const std::filesystem::path& config() const { return config_; }
  // Writes the configuration anew; it holds from the next start. `rpc_url`: another endpoint than before.
  void configure(const TxSettings& settings, const std::string& rpc_url = {});
  std::string output() const;  // since the first start
  // A counter or gauge, summed over all labels unless `name` has labels. 0 if there is none.
  double metric(const std::string& name) const;

 private:
  Setup setup_;
  std::filesystem::path config_;
  std::filesystem::path output_;
  std::uint16_t port_;
  std::optional<ChildProcess> child_;
};

struct TxClusterOptions {
  std::size_t nodes = 1;
  TxSettings settings;
  std::vector<std::string> anvil{"--block-time", "1"};
  bool proxied = false;               // each node reaches the database and the chain through its own proxies
  bool rewritten = false;             // each node reaches the chain through its own RpcRewriter
  bool second_endpoint = false;       // each node has anvil itself as an endpoint, after its own
  bool second_rewritten = false;      // … and reaches it through an RpcRewriter that all nodes share
  bool start = true;                  // start all nodes in the constructor
  std::string dsn;                    // a database of the test, not migrated; default: a new one
  std::vector<std::string> rpc_urls;  // one per node, instead of anvil's
  std::vector<std::vector<std::string>> node_keys;  // private keys, one list per node, instead of anvil's
  bool own_events = false;  // the test appends events of its own, which need not be as documented
};

class TxCluster {
 public:
  explicit TxCluster(TxClusterOptions options = {});
  ~TxCluster();  // fails the test if an event of its log is not as documented

  TxNode& node(std::size_t index) { return *nodes_.at(index); }
  std::size_t size() const { return nodes_.size(); }
  Anvil& anvil() { return *anvil_; }
  TcpProxy& database_proxy(std::size_t node) { return *database_proxies_.at(node); }
  TcpProxy& chain_proxy(std::size_t node) { return *chain_proxies_.at(node); }
  RpcRewriter& chain_rewriter(std::size_t node) { return *chain_rewriters_.at(node); }
  RpcRewriter& second_rewriter() { return second_rewriter_.value(); }
  const std::string& key() const { return key_; }

  Ask create_ask(std::size_t node, const boost::json::object& body) const;
  // POST /api/v1/tx. Returns the txId. Throws with the answer if the transaction was not accepted.
  std::string create(std::size_t node, const boost::json::object& body);
  // The same for a client that loses answers: retries with the same requestId until it gets one, for at most a minute.
  // Throws at once on a refusal that a retry cannot change.
  std::string create_by_retrying(std::size_t node, const boost::json::object& body);
  Answer get(std::size_t node, const std::string& path) const;
  Answer post(std::size_t node, const std::string& path, const boost::json::object& body) const;

  const std::string& dsn() const { return dsn_; }
  // The first column of the first row.
  std::string sql(const std::string& query) const;
  // Polls until the answer is `wanted`, for at most `patience`.
  bool sql_becomes(const std::string& query, const std::string& wanted,
                   std::chrono::milliseconds patience = std::chrono::seconds(60)) const;
  std::string column(const std::string& tx_id, const std::string& expression) const;
  bool becomes(const std::string& tx_id, const std::string& expression, const std::string& wanted,
               std::chrono::milliseconds patience = std::chrono::seconds(60)) const;
  bool all_confirmed(std::chrono::milliseconds patience = std::chrono::seconds(90)) const;
  // The index of the node that leads the signer; nothing if no node does.
  std::optional<std::size_t> leader_of(const std::string& signer) const;

  // Anvil's answer. Throws if it is an error.
  boost::json::value rpc(const std::string& method, boost::json::array params = {}) const;
  void mine(int blocks = 1) const { rpc("anvil_mine", {blocks}); }
  std::int64_t head() const;
  // Replaces the last `depth` blocks by empty ones. Their transactions do not go back to the pool.
  void reorg(std::int64_t depth) const { rpc("anvil_reorg", {depth, boost::json::array()}); }
  std::int64_t mined_count(const std::string& signer) const;
  std::int64_t balance(const std::string& address) const;

  // The state of the cluster, for the message of a failed test.
  std::string describe() const;

 private:
  std::string proxied_dsn(const std::string& dsn);

  TxClusterOptions options_;
  TempDir dir_{"tx"};
  std::optional<TestDatabase> database_;
  std::string dsn_;
  std::optional<Anvil> anvil_;
  std::vector<std::unique_ptr<TcpProxy>> database_proxies_;
  std::vector<std::unique_ptr<TcpProxy>> chain_proxies_;
  std::vector<std::unique_ptr<RpcRewriter>> chain_rewriters_;
  std::optional<RpcRewriter> second_rewriter_;
  std::vector<std::unique_ptr<TxNode>> nodes_;
  std::string key_;
};

// Anvil's accounts. Every node has their keys.
std::string signer(std::size_t index);
std::string signer_key(std::size_t index);

// An address with no balance whose key no node has.
std::string recipient(std::uint32_t number = 0);

// The body of a create: a plain transfer with gas, so that the node does not ask the chain.
boost::json::object transfer(const std::string& from, const std::string& request_id, std::int64_t value,
                             const std::string& to = recipient());

// Sends all requests at once, over up to 64 connections per node. Answers are in order; status 0 means no answer.
std::vector<Answer> ask_all(std::vector<Ask> asks, std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace fencepost::test
