// One loop's share of the server: its connections, their deadlines, and the values that they look up often.
// Only the loop's thread may call, unless a comment says otherwise.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <boost/intrusive/list.hpp>

#include "http/message.hpp"
#include "http/server.hpp"
#include "http/server_stream.hpp"

namespace fencepost::http {

using SteadyTime = std::chrono::steady_clock::time_point;

class Connection;
using ConnectionHook = boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// The metrics of one route, looked up once and then cached.
class RouteMetrics {
 public:
  RouteMetrics(Metrics& metrics, std::string route);
  void record(Verb verb, unsigned status, std::chrono::steady_clock::duration took);

 private:
  Metrics& metrics_;
  std::string route_;
  Metrics::Histogram* duration_ = nullptr;  // made by the first request: most routes are rarely used
  std::vector<std::pair<std::uint32_t, Metrics::Counter*>> counters_;  // by verb and status; a handful
};

// Counts one open connection; the destructor counts it down again. Any thread may use it.
class ConnectionSlot {
 public:
  ConnectionSlot(std::atomic<std::size_t>& open, Metrics::Gauge& gauge);
  ConnectionSlot(ConnectionSlot&& other) noexcept;
  ConnectionSlot& operator=(ConnectionSlot&&) = delete;
  ~ConnectionSlot();

 private:
  std::atomic<std::size_t>* open_;
  Metrics::Gauge& gauge_;
};

class LoopServer {
 public:
  LoopServer(Executor executor, const ServerOptions& options, const Router& router, Authenticator* authenticator,
             Metrics& metrics);
  ~LoopServer();

  void start();
  // Serves the connection, or closes it when draining.
  void adopt(Socket socket, ConnectionSlot slot);
  // For a connection over the limit: answers 503 and closes.
  void reject(Socket socket);

  awaitable<> begin_drain();
  awaitable<> finish(SteadyTime deadline);

  // Any thread may call.
  Executor executor() const { return executor_; }
  Metrics::Gauge& connections_gauge() { return connections_gauge_; }

  // For connections.
  const ServerOptions& options() const { return options_; }
  const Router& router() const { return router_; }
  Authenticator* authenticator() const { return authenticator_; }
  bool draining() const { return draining_; }
  std::string make_request_id();
  std::string_view date();  // "Sun, 06 Nov 1994 08:49:37 GMT"
  RouteMetrics& route_metrics(std::size_t index) { return route_metrics_[index]; }
  RouteMetrics& unmatched_metrics() { return route_metrics_.back(); }
  // Null: without TLS.
  std::shared_ptr<asio::ssl::context> tls_context() const;
  void count_failed_handshake() { failed_handshakes_.Increment(); }

 private:
  awaitable<> serve(Socket socket, ConnectionSlot slot);
  awaitable<> turn_away(Socket socket);
  awaitable<> watch_deadlines();

  Executor executor_;
  const ServerOptions& options_;
  const Router& router_;
  Authenticator* authenticator_;
  Metrics::Gauge& connections_gauge_;
  Metrics::Counter& rejected_;
  Metrics::Counter& failed_handshakes_;
  std::vector<RouteMetrics> route_metrics_;  // one per route; the last is for requests that match no route
  boost::intrusive::list<Connection, boost::intrusive::base_hook<ConnectionHook>,
                         boost::intrusive::constant_time_size<false>>
      connections_;
  TaskGroup tasks_;
  TaskGroup rejections_;
  TaskGroup watch_;
  std::uint64_t id_prefix_;
  std::uint64_t id_counter_ = 0;
  std::time_t date_second_ = 0;
  std::array<char, 32> date_text_{};
  std::size_t date_size_ = 0;
  bool draining_ = false;
};

}  // namespace fencepost::http
