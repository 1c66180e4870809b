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

// The parts of a request's URL.
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
  // Reads the system's authorities at the first call: reading them takes longer than many plain exchanges.
  asio::ssl::context& get();

 private:
  asio::ssl::context context_{asio::ssl::context::tls_client};
  bool trusts_system_ = false;
};

// Closes a connection at a deadline, which fails all its pending operations. One timer serves all phases.
class Deadline {
 public:
  explicit Deadline(Executor executor);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // Closes `connection` at `when`. Replaces an earlier watch.
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

  // Errors: connect_failed, address_not_allowed, tls_failed, timeout; nothing has been sent then.
  awaitable<Result<void>> connect(const Endpoint& endpoint, std::chrono::steady_clock::time_point until);

  // Sets `stale` when the peer closed before the first byte of its answer. On a reused connection that usually means
  // that the server's idle timeout has closed it.
  awaitable<Result<ClientResponse>> exchange(const ClientRequest& request, std::string_view head,
                                             std::chrono::steady_clock::time_point until, bool& stale);

  // Whether another exchange may follow the last one.
  bool reusable() const { return reusable_; }
  // False when the peer closed the idle connection, or sent bytes without a request.
  bool looks_alive();
  void close();

  std::chrono::steady_clock::time_point idle_since{};

 private:
  Socket& socket();
  awaitable<Result<void>> handshake(const Endpoint& endpoint, Deadline& deadline);
  template <class Stream>
  awaitable<Result<ClientResponse>> exchange_on(Stream& stream, const ClientRequest& request, std::string_view head,
                                                std::chrono::steady_clock::time_point until, bool& stale);
  template <class Stream>
  awaitable<Result<ClientResponse>> read_pieces(Stream& stream, const ClientRequest& request, Deadline& deadline,
                                                std::chrono::milliseconds patience, bool& stale);

  Executor executor_;
  const ClientOptions& options_;
  std::variant<Socket, TlsStream> stream_;
  boost::beast::flat_buffer buffer_;
  bool reusable_ = false;
};

}  // namespace fencepost::http::detail
