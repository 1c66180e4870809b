// A JSON-RPC proxy that changes replies, method by method: an endpoint that lies, forgets or refuses.
//
//   RpcRewriter endpoint(anvil.url());
//   endpoint.answer_null("eth_getTransactionReceipt");
//   … a node that uses endpoint.url() …
//   endpoint.pass_all();
//
// Calls in a batch are changed one by one. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "http/http_test_support.hpp"

namespace fencepost::test {

class RpcRewriter {
 public:
  // Gets the call and the reply of the server behind; gives the reply that the client sees. Called on the proxy's
  // loops.
  using Change = std::function<boost::json::object(const boost::json::object& call, boost::json::object reply)>;

  explicit RpcRewriter(std::string url);

  std::string url() const { return server_.url("/"); }

  void change(const std::string& method, Change change);
  // Gets a call; gives the message with which the client is refused, or nothing. The server behind never sees a call
  // that is refused.
  using Refuse = std::function<std::optional<std::string>(const boost::json::object& call)>;
  void refuse(const std::string& method, Refuse refuse);
  void answer_null(const std::string& method);
  void answer_error(const std::string& method, int code, const std::string& message);
  // Leaves calls of the method unanswered until release().
  void hold(const std::string& method);
  void release(const std::string& method);
  void pass(const std::string& method);
  void pass_all();

  // Answers nothing but HTTP 503 until fail(false): an endpoint that is down.
  void fail(bool down = true);

  enum class TooLarge { kRefused, kTruncated };
  // Answers batches of at most `calls` calls; a larger one is refused, or only its first calls are answered. 0: no
  // limit.
  void limit_batches(std::size_t calls, TooLarge larger = TooLarge::kRefused);

  // Knows no block above `last_block`: an endpoint that is behind. Nothing: knows all.
  void lag(std::optional<std::int64_t> last_block);

  // Accepts broadcasts and drops them: a node without peers. Counts them as changed.
  void swallow_broadcasts(bool swallow = true);

  // How many replies of the method were changed since the start.
  std::size_t changed(const std::string& method) const;
  // How many requests or replies were changed, refused, held or dropped since the start, in any way.
  std::size_t touched() const { return touched_; }

 private:
  awaitable<http::Response> answer(http::Request& request);
  std::optional<std::int64_t> last_block() const;
  bool fails() const;
  // What a server that does not take a batch of that size answers; nothing when it does. May shorten the batch.
  std::optional<boost::json::value> refuse_batch(boost::json::value& calls);
  void drop_broadcast(boost::json::object& call);
  awaitable<> wait_while_held(const boost::json::object& call);
  // The messages of the calls that are refused, by their id. Makes these calls harmless in `calls`.
  std::map<std::string, std::string> take_refused(boost::json::value& calls);
  boost::json::value rewrite(const boost::json::value& request, boost::json::value reply);
  boost::json::object rewrite_one(const boost::json::object& call, boost::json::object reply);

  std::string url_;
  std::atomic<std::size_t> touched_{0};
  mutable std::mutex mutex_;  // guards all below but the server
  std::map<std::string, Refuse> refusals_;
  std::map<std::string, Change> changes_;
  std::map<std::string, std::size_t> counts_;
  std::optional<std::int64_t> last_block_;
  std::size_t batch_limit_ = 0;
  TooLarge larger_ = TooLarge::kRefused;
  bool swallows_ = false;
  bool fails_ = false;
  std::map<std::string, std::shared_ptr<http::testing::Gate>> gates_;
  http::testing::TestServer server_;
};

}  // namespace fencepost::test
