// Several real nodes that share one database and one chain, for tests of the transaction manager as a whole.
//
//   TxCluster cluster({.nodes = 2});
//   const auto id = cluster.create(0, transfer(signer(0), "first", 1));
//   ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
//
// The nodes are processes of their own: they may be stopped, killed and started again, and, with `proxied`, be cut off
// from the database or from the chain.
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

// What differs from test to test of a node's configuration. Impatient, so that tests are short.
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
  std::string fees = "{}";                  // YAML
  std::vector<std::string> more_keys = {};  // private ones, beside anvil's
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
  ~TxNode();  // SIGKILL: what an orderly stop does is for the tests that are about it

  // With these variables on top of ours. `start` returns when it is ready and throws with its output when it is not;
  // `launch` returns at once.
  void start(const std::vector<std::string>& env = {});
  void launch(const std::vector<std::string>& env = {});
  void await_ready();
  void signal(int number);
  void resume();      // once it has stopped, by SIGSTOP or at a test point
  void kill();        // and waits for its end
  ExitStatus stop();  // SIGTERM, and waits
  bool dies();        // by itself, within kPatience
  bool running() { return child_ && child_->running(); }

  std::string url(const std::string& path) const;
  const std::filesystem::path& config() const { return config_; }
  std::string output() const;  // of all its lives
  // A counter or gauge, over all its labels unless the name brings them along; 0 when there is none.
  double metric(const std::string& name) const;

 private:
  std::filesystem::path config_;
  std::filesystem::path output_;
  std::uint16_t port_;
  std::optional<ChildProcess> child_;
};

struct TxClusterOptions {
  std::size_t nodes = 1;
  TxSettings settings;
  std::vector<std::string> anvil{"--block-time", "1"};
  bool proxied = false;               // each node reaches database and chain through proxies of its own
  bool rewritten = false;             // each node reaches the chain through an RpcRewriter of its own
  bool start = true;                  // all nodes, in the constructor
  std::string dsn;                    // a database that the test brings, not migrated; else one of its own
  std::vector<std::string> rpc_urls;  // one for each node, in place of anvil's
};

class TxCluster {
 public:
  explicit TxCluster(TxClusterOptions options = {});

  TxNode& node(std::size_t index) { return *nodes_.at(index); }
  std::size_t size() const { return nodes_.size(); }
  Anvil& anvil() { return *anvil_; }
  TcpProxy& database_proxy(std::size_t node) { return *database_proxies_.at(node); }
  TcpProxy& chain_proxy(std::size_t node) { return *chain_proxies_.at(node); }
  RpcRewriter& chain_rewriter(std::size_t node) { return *chain_rewriters_.at(node); }
  const std::string& key() const { return key_; }

  Ask create_ask(std::size_t node, const boost::json::object& body) const;
  // POST /api/v1/tx; throws with the answer unless it was accepted. Gives the txId.
  std::string create(std::size_t node, const boost::json::object& body);
  // The same as a client does it who loses answers: again, with the same requestId, until it has one. For at most a
  // minute; what is refused for good throws at once.
  std::string create_by_retrying(std::size_t node, const boost::json::object& body);
  Answer get(std::size_t node, const std::string& path) const;
  Answer post(std::size_t node, const std::string& path, const boost::json::object& body) const;

  const std::string& dsn() const { return dsn_; }
  // The first column of the first row.
  std::string sql(const std::string& query) const;
  // Asks until the answer is this one, for at most that long.
  bool sql_becomes(const std::string& query, const std::string& wanted,
                   std::chrono::milliseconds patience = std::chrono::seconds(60)) const;
  std::string column(const std::string& tx_id, const std::string& expression) const;
  bool becomes(const std::string& tx_id, const std::string& expression, const std::string& wanted,
               std::chrono::milliseconds patience = std::chrono::seconds(60)) const;
  bool all_confirmed(std::chrono::milliseconds patience = std::chrono::seconds(90)) const;
  // Which node leads, by its place; none when nobody does.
  std::optional<std::size_t> leader_of(const std::string& signer) const;

  // Anvil's answer; throws when it is an error.
  boost::json::value rpc(const std::string& method, boost::json::array params = {}) const;
  void mine(int blocks = 1) const { rpc("anvil_mine", {blocks}); }
  std::int64_t head() const;
  // The last `depth` blocks are replaced by empty ones; what was in them is not in the pool again.
  void reorg(std::int64_t depth) const { rpc("anvil_reorg", {depth, boost::json::array()}); }
  std::int64_t mined_count(const std::string& signer) const;
  std::int64_t balance(const std::string& address) const;

  // Everything a person needs who has to find out what went wrong.
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
  std::vector<std::unique_ptr<TxNode>> nodes_;
  std::string key_;
};

// Anvil's accounts, which every node has the keys of.
std::string signer(std::size_t index);
std::string signer_key(std::size_t index);

// An address that has nothing and that nobody has the key of.
std::string recipient(std::uint32_t number = 0);

// The body of a create: a plain transfer with gas given, so that the chain is not asked.
boost::json::object transfer(const std::string& from, const std::string& request_id, std::int64_t value,
                             const std::string& to = recipient());

// All at once, over up to 64 connections per node, each answer in its place; status 0 where there is none.
std::vector<Answer> ask_all(std::vector<Ask> asks, std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace fencepost::test
