#include "http/server_stream.hpp"

namespace fencepost::http {

ServerStream::ServerStream(Socket socket, std::shared_ptr<asio::ssl::context> tls)
    : socket_(std::move(socket)), context_(std::move(tls)) {
  if (context_) tls_.emplace(socket_, *context_);
}

awaitable<boost::system::error_code> ServerStream::handshake() {
  if (!tls_) co_return boost::system::error_code();
  const auto [ec] = co_await tls_->async_handshake(asio::ssl::stream_base::server, use_tuple);
  co_return ec;
}

std::size_t ServerStream::write_now(std::string_view bytes, boost::system::error_code& ec) {
  if (tls_) {
    ec = {};
    return 0;
  }
  const auto sent = socket_.write_some(asio::buffer(bytes), ec);
  if (ec == asio::error::would_block) ec = {};
  return ec ? 0 : sent;
}

awaitable<> ServerStream::end() {
  if (tls_) co_await tls_->async_shutdown(use_tuple);
  boost::system::error_code gone;  // the client has closed the connection
  socket_.shutdown(Socket::shutdown_send, gone);
}

awaitable<> ServerStream::end_now() {
  boost::system::error_code gone;
  // async_shutdown waits for the client's answer: without a receiving side, that wait ends at once.
  socket_.shutdown(Socket::shutdown_receive, gone);
  if (!gone) co_await end();
}

}  // namespace fencepost::http
