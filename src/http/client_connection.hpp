// One connection of the client, plain or TLS: connect, then one exchange at a time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "http/client.hpp"

namespace fencepost::http::detail {

// Where a request goes, taken from its URL.
struct Endpoint {
  bool tls = false;
  std::string host;  // without brackets
  std::string port;
  std::string host_header;
  std::string target;
  std::string basic_credentials;  // "user:password", decoded; empty when there are none

  std::string origin() const;
  static Result<Endpoint> parse(std::string_view url);
};

class TlsContext {
 public:
  explicit TlsContext(const std::string& ca_file);
  // The system's authorities are read when they are first asked for: that takes longer than many a plain exchange.
  asio::ssl::context& get();

 private:
  asio::ssl::context context_{asio::ssl::context::tls_client};
  bool trusts_system_ = false;
};

// Fails everything a connection is waiting for when time is up. One timer, moved from phase to phase.
class Deadline {
 public:
  explicit Deadline(Executor executor);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // From now on `connection` is closed when `when` comes.
  void watch(ClientConnection& connection, std::chrono::steady_clock::time_point when);
  bool expired() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

Error sent_error(ErrorKind kind, std::string code, std::string message, bool sent);

class ClientConnection {
  using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
  using TlsStream = asio::ssl::stream<Socket>;

 public:
  ClientConnection(Executor executor, const Endpoint& endpoint, TlsContext& tls, const ClientOptions& options);

  // Errors: connect_failed, tls_failed, timeout; nothing has been sent then.
  awaitable<Result<void>> connect(const Endpoint& endpoint, std::chrono::steady_clock::time_point until);

  // `stale` is set when the peer closed before it answered with a single byte, which is what a reused connection
  // whose server lost patience looks like.
  awaitable<Result<ClientResponse>> exchange(const ClientRequest& request, std::string_view head,
                                             std::chrono::steady_clock::time_point until, bool& stale);

  // After an exchange: may another one follow?
  bool reusable() const { return reusable_; }
  // Whether the peer has closed it (or talks out of turn) while it was idle.
  bool looks_alive();
  void close();

  std::chrono::steady_clock::time_point idle_since{};

 private:
  Socket& socket();
  awaitable<Result<void>> handshake(const Endpoint& endpoint, Deadline& deadline);
  template <class Stream>
  awaitable<Result<ClientResponse>> exchange_on(Stream& stream, const ClientRequest& request, std::string_view head,
                                                std::chrono::steady_clock::time_point until, bool& stale);

  Executor executor_;
  const ClientOptions& options_;
  std::variant<Socket, TlsStream> stream_;
  boost::beast::flat_buffer buffer_;
  bool reusable_ = false;
};

}  // namespace fencepost::http::detail
