// One chain as this node sees it: its endpoints, its stored headers, the block follower, and which blocks are final.
// All domains that need the chain share this object; none owns it.
//
// Pinned to one loop, home(). Other loops may call only the members marked "Any loop".
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"
#include "evm/block_follower.hpp"
#include "evm/endpoint_watch.hpp"
#include "evm/evm_connector.hpp"
#include "evm/finality_rule.hpp"
#include "evm/header_store.hpp"
#include "evm/json_rpc.hpp"
#include "evm/own_branch.hpp"
#include "http/client.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::evm {

struct ChainOptions {
  std::string name;
  std::int64_t chain_id = 0;
  std::vector<Secret> rpc_urls;     // in order of preference; they often carry credentials
  std::vector<Secret> submit_urls;  // broadcasts go only there; empty: to rpc_urls
  std::size_t batch_size = 100;     // calls in one request
  std::chrono::milliseconds poll_interval{1000};
  FinalityRule finality;
};

// A node's current view of a chain.
struct ChainStatus {
  std::int64_t chain_id = 0;
  std::string name;
  std::optional<BlockHeader> head;
  bool synced = false;
  FinalityRule finality;
  std::vector<EndpointStatus> endpoints;
  std::vector<EndpointStatus> submit_endpoints;
  TimePoint answers_since;  // an endpoint that is polled has answered since then, or does not answer
};

// The highest final block on the node's own branch.
struct FinalBlock {
  std::int64_t number = 0;
  Endpoint endpoint;  // the one that reported it; none: counted from the node's own head
};

class Chain {
 public:
  struct Parts {
    Runtime& runtime;
    pg::Database& database;
    const Clock& clock;
    Random& random;
    Metrics& metrics;
  };
  // `loop`: the loop of the runtime that the chain lives on.
  Chain(const Parts& parts, std::size_t loop, ChainOptions options);

  // Any loop.
  std::int64_t id() const { return options_.chain_id; }
  const std::string& name() const { return options_.name; }
  const FinalityRule& finality() const { return options_.finality; }
  Executor home() const { return home_; }
  awaitable<ChainStatus> status();

  // On home().
  ChainConnector& connector() { return connector_; }
  BlockFollower& follower() { return follower_; }
  OwnBranch& branch() { return branch_; }
  HeaderStore& headers() { return headers_; }
  // For calls that the connector does not have.
  JsonRpcClient& rpc() { return rpc_; }
  // For raw transactions of clients.
  JsonRpcClient& submit_rpc() { return submit_ ? *submit_ : rpc_; }
  EndpointWatch& endpoints() { return watch_; }

  // Nothing while the final block is unknown: there is no head yet, the chain is shorter than the depth, no endpoint
  // reports the tag, or the tag's block is not on the node's own branch. A tag below every stored header is believed.
  // On home().
  awaitable<std::optional<FinalBlock>> final_block();

  // Asks every endpoint for its chain id and its head. One that reports another chain is logged and not used until it
  // reports the right one. Any loop.
  // Requires: done before any domain's worker starts, so that no worker acts on another chain's answers.
  awaitable<> check_endpoints();
  // Starts the watch of the endpoints, and the follower, which polls also while no endpoint answers. Any loop.
  // Requires: the domains have subscribed.
  awaitable<> start();
  awaitable<> stop();

 private:
  ChainStatus status_now() const;

  ChainOptions options_;
  const Clock& clock_;
  Executor home_;
  http::Client http_;
  JsonRpcClient rpc_;
  std::optional<JsonRpcClient> submit_;
  EndpointWatch watch_;
  EvmConnector connector_;
  PgHeaderStore headers_;
  BlockFollower follower_;
  OwnBranch branch_;
};

}  // namespace fencepost::evm
