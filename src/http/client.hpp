// The HTTP/1.1 client: http and https, connections reused per origin. Follows no redirects.
//
// Pinned to one loop: construct it on any thread, call `send` only from coroutines on that loop. Destroy it when no
// `send` is in flight, either on that loop or after the loop has stopped.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "base/error.hpp"
#include "runtime/async.hpp"

namespace fencepost::http {

struct ClientOptions {
  std::chrono::milliseconds connect_timeout{5'000};  // name lookup, TCP and TLS together
  std::chrono::milliseconds total_timeout{30'000};   // of one send, including the wait for a connection
  std::chrono::milliseconds idle_timeout{30'000};    // how long an unused connection is kept
  std::size_t max_header_bytes = 64 * 1024;
  std::size_t max_body_bytes = 64 * 1024 * 1024;
  std::size_t max_connections_per_origin = 16;
  std::size_t max_idle_per_origin = 16;
  std::size_t max_waiting_per_origin = 1024;  // sends that wait for a connection; over it: `client_busy`
  std::size_t max_origins = 256;              // above it, origins without a connection in use are forgotten
  // Whether the client may connect to that address; null: to any. The name is looked up once for a connection, and only
  // addresses that pass are connected to, so a name that changes its address in between gains nothing.
  std::function<bool(const asio::ip::address&)> allows_address;
  std::string ca_file;  // trusted in addition to the system's certificates; empty: none
};

struct ClientRequest {
  std::string method = "GET";
  std::string url;  // user:password@ becomes basic authentication
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // The client may send the request again when a reused connection broke and the server may have received it.
  bool idempotent = false;
  std::optional<std::chrono::milliseconds> timeout;  // instead of total_timeout
  // For an answer without an end: gets the body of a 2xx answer piece by piece, and the response has none. Returns
  // false to end the exchange. The timeout is then the longest time between two pieces. Empty: the body is collected.
  std::function<bool(std::string_view piece)> on_body = {};
};

struct ClientResponse {
  unsigned status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool over_new_connection = false;  // opened for this request

  // The first header with that name, compared case-insensitively; nothing when there is none.
  std::optional<std::string_view> header(std::string_view name) const;
};

// Whether a failed request may have reached the server. False only when it certainly did not: then the caller may
// safely send it again. For errors of Client::send; true for any other error.
bool may_have_been_sent(const Error& error);

namespace detail {
class ClientConnection;
class ConnectionPool;
class TlsContext;
struct Endpoint;
}  // namespace detail

class Client {
 public:
  // Throws Exception `bad_ca_file` when that file cannot be loaded.
  Client(Executor executor, ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Executor executor() const { return executor_; }

  // A response with any status is a success. Errors, when there is no response:
  //   bad_url, bad_header   the request cannot be sent as it is
  //   client_busy           too many sends wait for a connection to this origin
  //   connect_failed        no connection (refused, unreachable, unknown name)
  //   address_not_allowed   the host has no address that allows_address admits
  //   tls_failed            the certificate is not trusted: wrong name, unknown authority, expired
  //   timeout               while waiting for a connection, connecting or waiting for the answer
  //   connection_lost       after at least a part of the request was sent
  //   response_too_large    head or body over the limit
  //   bad_response          not HTTP
  awaitable<Result<ClientResponse>> send(ClientRequest request);

  // Connections opened since construction; for tests and metrics.
  std::size_t connections_opened() const { return opened_; }
  // Origins that the client remembers; for tests.
  std::size_t origins() const { return pools_.size(); }

 private:
  awaitable<Result<ClientResponse>> try_once(const ClientRequest& request, const detail::Endpoint& endpoint,
                                             std::string_view head, std::chrono::steady_clock::time_point deadline,
                                             bool fresh, bool& stale);
  std::shared_ptr<detail::ConnectionPool> pool_of(const std::string& origin);

  Executor executor_;
  ClientOptions options_;
  std::unique_ptr<detail::TlsContext> tls_;
  std::map<std::string, std::shared_ptr<detail::ConnectionPool>> pools_;
  std::size_t opened_ = 0;
};

}  // namespace fencepost::http
