// JSON-RPC 2.0 over HTTP to the nodes of one chain, with failover.
//
// The client tries one endpoint after the other until one answers. An endpoint has not answered when the connection or
// HTTP failed, when the reply is not JSON-RPC, or when the error in the reply is about the server (quota, overload).
// Every other error ("execution reverted", "nonce too low") is an answer and is returned unchanged.
//
// Calls go only to endpoints of the chain `chain_id`: an endpoint that failed is asked for its chain id before it is
// used again. An endpoint that refuses a batch, or answers only a part of it, gets smaller batches from then on.
//
// Pinned to the http::Client's loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/json/array.hpp>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "evm/endpoint_health.hpp"
#include "evm/reply/rpc_reply.hpp"
#include "http/client.hpp"
#include "runtime/async.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::evm {

struct JsonRpcOptions {
  std::string chain;                          // the label in metrics and log lines
  std::uint64_t chain_id = 0;                 // which chain the endpoints must be on; 0: any
  bool relays = false;                        // the endpoints take broadcasts, and may know no other method
  std::size_t max_batch = 100;                // calls in one HTTP request; more are split
  std::chrono::milliseconds timeout{10'000};  // of one attempt at one endpoint
  BackoffOptions cooldown{.initial = std::chrono::milliseconds(1'000), .cap = std::chrono::milliseconds(60'000)};
};

struct RpcCall {
  std::string method;
  boost::json::array params;
  std::string params_text = {};  // sent unchanged instead of `params` unless empty: JSON text, an array or an object
  std::string label = {};        // of the method in metrics; empty: the method
};

struct RpcCallOptions {
  // Use only this endpoint (RpcValue::endpoint() of an earlier answer): another node may not know what this one
  // reported.
  std::optional<std::size_t> endpoint;
  // False: the client must not repeat calls that may have reached an endpoint. Reads are repeatable, and so is
  // eth_sendRawTransaction, since the same bytes are the same transaction.
  bool repeatable = true;
  std::optional<std::chrono::milliseconds> timeout;
  // True: an error "limit exceeded" that does not say which limit is an answer, not a quota (is_bare_limit).
  bool bare_limit_is_answer = false;
  // True: ask also an endpoint whose chain id is unchecked or wrong.
  bool any_chain = false;
  // What an answer says about the health of the endpoint.
  Proof proof = Proof::kWorks;
};

// How far a failed call got.
enum class Reach {
  kNowhere,   // certainly reached no endpoint
  kUnknown,   // at least one attempt may have been executed without an answer
  kAnswered,  // an endpoint answered with this error, and no earlier attempt reached an endpoint
};

// How far the call behind an error of JsonRpcClient got; kUnknown for any other error.
Reach reach_of(const Error& error);
// The error code inside the answer; nothing when there was no answer.
std::optional<std::int64_t> rpc_code(const Error& error);

class JsonRpcClient {
 public:
  // Keeps references: all of them must outlive the client. Throws as EndpointHealth does.
  JsonRpcClient(http::Client& http, std::vector<std::string> endpoints, JsonRpcOptions options, const Clock& clock,
                Random& random, Metrics& metrics);

  // Errors:
  //   rpc_error        kUnprocessable: an endpoint answered with an error; the message is the endpoint's, context has
  //                    rpcCode, data and endpoint
  //   rpc_unavailable  kUnavailable: no endpoint answered; message and context describe the last failure
  // reach_of() says how far the call got.
  awaitable<Result<RpcValue>> call(RpcCall call, RpcCallOptions options = {});

  // One result for each call, in order. One endpoint answers each part of a split batch as a whole.
  awaitable<std::vector<Result<RpcValue>>> batch(std::vector<RpcCall> calls, RpcCallOptions options = {});

  // Like `batch`, for calls of another client: an endpoint's error is an outcome and is returned as the endpoint sent
  // it. The Result fails with rpc_unavailable only. A single call is not sent as a batch.
  awaitable<std::vector<Result<RpcOutcome>>> forward(std::vector<RpcCall> calls, RpcCallOptions options = {});

  // eth_chainId of one endpoint, or of the first endpoint that answers.
  awaitable<Result<std::uint64_t>> chain_id(RpcCallOptions options = {});
  // Asks every endpoint, all at once. An endpoint on another chain is not used until a later check clears it. Errors:
  // `wrong_chain` with the names of those endpoints, `rpc_unavailable` when none answered.
  awaitable<Result<void>> check_chain_id(std::uint64_t expected);
  // The same for one endpoint; `rpc_unavailable` when it did not answer. Logs an endpoint that is found on another
  // chain, or on the right one again.
  awaitable<Result<std::uint64_t>> check_endpoint(std::size_t endpoint, std::uint64_t expected, Proof proof);

  Executor executor() const { return http_.executor(); }
  std::chrono::milliseconds timeout() const { return options_.timeout; }
  std::size_t endpoint_count() const { return health_.size(); }
  EndpointStatus endpoint_status(std::size_t index) const { return health_.status(index); }
  // See EndpointHealth.
  std::vector<std::size_t> candidates() const { return health_.candidates(); }
  std::vector<std::size_t> healthy() const { return health_.healthy(); }
  bool any_usable() const { return health_.any_usable(); }
  std::optional<std::int64_t> highest_head() const { return health_.highest_head(); }
  void note_head(std::size_t endpoint, std::int64_t number);
  // Logs the endpoints that are behind now, or no longer.
  void compare_heads(const std::vector<std::optional<std::int64_t>>& heads);

  // Called after each request that changed whether an endpoint answers, and after each check of a chain id.
  void on_health(std::function<void()> callback) { on_health_ = std::move(callback); }

 private:
  struct Attempt;
  struct EndpointMetrics {
    Metrics::Histogram* duration;
    Metrics::Gauge* latency;
    Metrics::Gauge* up;
    Metrics::Gauge* head;
    Metrics::Gauge* batch_limit;
    std::map<std::pair<std::string, std::string>, Metrics::Counter*> requests;  // by method and result
  };

  struct Exchange;

  // Tries the endpoints in turn. One HTTP request for all calls.
  awaitable<Result<Exchange>> exchange(std::vector<RpcCall> calls, RpcCallOptions options, bool as_batch);
  awaitable<std::vector<Result<RpcValue>>> ask(std::vector<RpcCall> calls, RpcCallOptions options, bool as_batch);
  // Why the endpoint must not be asked; nothing when it may be.
  awaitable<std::optional<Error>> chain_doubt(std::size_t endpoint, RpcCallOptions options);
  // As many requests as the endpoint's limit asks for, one after the other. Fails as a whole.
  awaitable<Attempt> attempt_in_parts(std::size_t endpoint, const std::vector<RpcCall>& calls, bool as_batch,
                                      const RpcCallOptions& options);
  awaitable<Attempt> attempt(std::size_t endpoint, std::span<const RpcCall> calls, bool as_batch,
                             const RpcCallOptions& options);
  // Updates the endpoint's health, and logs when it stops answering and when it answers again.
  void record(std::size_t endpoint, const Attempt& attempt, std::chrono::microseconds took, Proof proof);
  Attempt read(http::ClientResponse response, std::uint64_t first_id, std::size_t count, bool as_batch,
               const RpcCallOptions& options) const;
  void limit_batch(std::size_t endpoint, std::size_t refused, const Error& why);
  std::vector<Result<RpcValue>> deliver(std::size_t endpoint, std::vector<RpcOutcome> outcomes,
                                        bool earlier_unknown) const;
  void count(std::size_t endpoint, const RpcCall& call, std::string_view result);

  http::Client& http_;
  std::vector<std::string> urls_;
  JsonRpcOptions options_;
  const Clock& clock_;
  EndpointHealth health_;
  Metrics& metrics_;
  std::vector<EndpointMetrics> endpoint_metrics_;
  std::uint64_t next_id_ = 1;
  std::function<void()> on_health_ = [] {};
};

}  // namespace fencepost::evm
