// The HTTP/1.1 client: http and https, connections reused per origin. Follows no redirects.
//
// Pinned to one loop: construct anywhere, call `send` only from coroutines on that loop, and destroy it when no
// `send` is under way and the loop is stopped or on it.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/async.hpp"

namespace fencepost::http {

struct ClientOptions {
  std::chrono::milliseconds connect_timeout{5'000};  // name, TCP and TLS together
  std::chrono::milliseconds total_timeout{30'000};   // of one send, the wait for a connection included
  std::chrono::milliseconds idle_timeout{30'000};    // how long an unused connection is kept
  std::size_t max_header_bytes = 64 * 1024;
  std::size_t max_body_bytes = 64 * 1024 * 1024;
  std::size_t max_connections_per_origin = 16;
  std::size_t max_idle_per_origin = 16;
  std::size_t max_waiting_per_origin = 1024;  // sends that wait for a connection; over it: `client_busy`
  std::string ca_file;                        // trusted beside the system's certificates
};

struct ClientRequest {
  std::string method = "GET";
  std::string url;  // user:password@ becomes basic authentication
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // May be sent again when a reused connection turns out to be closed and it is not known how far it got.
  bool idempotent = false;
  std::optional<std::chrono::milliseconds> timeout;  // instead of total_timeout
};

struct ClientResponse {
  unsigned status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  // Case-insensitive; the first one when there are several.
  std::optional<std::string_view> header(std::string_view name) const;
};

// Whether a failed request may have reached the server all the same. False only when it certainly did not: then
// sending it again is safe. Meant for the errors of Client::send; true for any other error.
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

  // Any status is a response; an error means that there is none:
  //   bad_url, bad_header   the request cannot be sent as it is
  //   client_busy           too many sends wait for this origin already
  //   connect_failed        no connection (refused, unreachable, unknown name)
  //   tls_failed            no trust: wrong name, unknown authority, expired
  //   timeout               while waiting, connecting or for the answer
  //   connection_lost       after the request was sent, or began to be
  //   response_too_large    head or body over the limit
  //   bad_response          not HTTP
  awaitable<Result<ClientResponse>> send(ClientRequest request);

  // Since the start; for tests and metrics.
  std::size_t connections_opened() const { return opened_; }

 private:
  awaitable<Result<ClientResponse>> try_once(const ClientRequest& request, const detail::Endpoint& endpoint,
                                             std::string_view head, std::chrono::steady_clock::time_point deadline,
                                             bool fresh, bool& stale);

  Executor executor_;
  ClientOptions options_;
  std::unique_ptr<detail::TlsContext> tls_;
  std::map<std::string, std::shared_ptr<detail::ConnectionPool>> pools_;
  std::size_t opened_ = 0;
};

}  // namespace fencepost::http
