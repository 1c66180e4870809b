// The bytes of one client's connection, plain or under TLS. Pinned to the connection's loop; at most one read and one
// write at a time.
//
// A plain connection costs no more than its socket: the functions return what the socket returns.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include "runtime/async.hpp"

namespace fencepost::http {

using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;

class ServerStream {
 public:
  // `tls`: null for a plain connection.
  ServerStream(Socket socket, std::shared_ptr<asio::ssl::context> tls);

  Socket& socket() { return socket_; }
  bool is_tls() const { return tls_.has_value(); }

  // Does nothing on a plain connection. Requires: nothing was read or written before.
  awaitable<boost::system::error_code> handshake();

  auto read_some(asio::mutable_buffer into) {
    return tls_ ? tls_->async_read_some(into, use_tuple) : socket_.async_read_some(into, use_tuple);
  }
  auto write(asio::const_buffer bytes) {
    return tls_ ? asio::async_write(*tls_, bytes, use_tuple) : asio::async_write(socket_, bytes, use_tuple);
  }
  // Writes what the kernel accepts at once, which may be nothing, as always under TLS. Requires: the socket does not
  // block.
  std::size_t write_now(std::string_view bytes, boost::system::error_code& ec);

  // Says that no more bytes will come, so that the client can tell the end of an answer from a broken connection.
  // Under TLS it then waits until the client has said the same or sends something else.
  awaitable<> end();
  // The same without waiting for the client. Nothing can be read afterwards.
  awaitable<> end_now();

 private:
  Socket socket_;
  std::shared_ptr<asio::ssl::context> context_;
  std::optional<asio::ssl::stream<Socket&>> tls_;
};

}  // namespace fencepost::http
