#include "http/client_connection.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "http/message.hpp"

namespace fencepost::http::detail {

namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using SteadyTime = std::chrono::steady_clock::time_point;

namespace {

constexpr std::size_t kReadAhead = 64 * 1024;
constexpr unsigned kMaxInterim = 8;  // 1xx answers before the real one

// A name lookup runs on a thread that cannot be interrupted. A waiter that times out leaves; the shared state stays
// alive for the late answer.
struct Lookup {
  explicit Lookup(Executor executor) : resolver(executor), done(executor) {}
  asio::ip::basic_resolver<tcp, Executor> resolver;
  asio::steady_timer done;
  bool finished = false;
  boost::system::error_code error;
  std::vector<tcp::endpoint> endpoints;
};

awaitable<Result<std::vector<tcp::endpoint>>> resolve(Executor executor, const Endpoint& endpoint, SteadyTime until) {
  boost::system::error_code ec;
  if (const auto address = asio::ip::make_address(endpoint.host, ec); !ec) {
    co_return std::vector{tcp::endpoint(address, static_cast<std::uint16_t>(std::stoul(endpoint.port)))};
  }
  const auto lookup = std::make_shared<Lookup>(executor);
  lookup->done.expires_at(until);
  lookup->resolver.async_resolve(endpoint.host, endpoint.port, [lookup](const auto& error, const auto& results) {
    lookup->finished = true;
    lookup->error = error;
    for (const auto& entry : results) lookup->endpoints.push_back(entry.endpoint());
    lookup->done.cancel();
  });
  if (!lookup->finished) co_await lookup->done.async_wait(use_tuple);
  if (!lookup->finished) {
    lookup->resolver.cancel();  // a lookup that has not begun yet must not delay those behind it
    co_return fail(sent_error(ErrorKind::kTimeout, "timeout",
                              fmt::format("the name lookup of {} timed out", endpoint.host), false));
  }
  if (lookup->error) {
    co_return fail(sent_error(ErrorKind::kUnavailable, "connect_failed",
                              fmt::format("cannot resolve {}: {}", endpoint.host, lookup->error.message()), false));
  }
  co_return std::move(lookup->endpoints);
}

Error read_error(const boost::system::error_code& ec) {
  const auto lost = [](std::string message) {
    return sent_error(ErrorKind::kUnavailable, "connection_lost", std::move(message), true);
  };
  if (ec == beast_http::error::header_limit || ec == beast_http::error::body_limit ||
      ec == beast_http::error::buffer_overflow) {
    return sent_error(ErrorKind::kUnavailable, "response_too_large", "the answer is over the size limit", true);
  }
  if (ec == beast_http::error::end_of_stream || ec == asio::error::eof) {
    return lost("the server closed the connection before it answered");
  }
  if (ec == beast_http::error::partial_message || ec == asio::ssl::error::stream_truncated) {
    return lost("the server closed the connection in the middle of its answer");
  }
  if (ec.category() == beast_http::make_error_code(beast_http::error::bad_version).category()) {
    return sent_error(ErrorKind::kUnavailable, "bad_response", fmt::format("the answer is not HTTP: {}", ec.message()),
                      true);
  }
  return lost(fmt::format("the connection broke: {}", ec.message()));
}

template <class Message>
ClientResponse head_of(const Message& message) {
  ClientResponse response;
  response.status = message.result_int();
  for (const auto& field : message) response.headers.emplace_back(field.name_string(), field.value());
  return response;
}

}  // namespace

Error sent_error(ErrorKind kind, std::string code, std::string message, bool sent) {
  return Error{kind, std::move(code), std::move(message), {}, {}}.with("sent", sent ? "unknown" : "no");
}

std::string Endpoint::origin() const {
  return fmt::format("{}://{}:{}", tls ? "https" : "http", host, port);
}

Result<Endpoint> Endpoint::parse(std::string_view text) {
  const auto bad = [](std::string_view why) {
    // The message does not quote the URL, which may contain credentials.
    return fail(sent_error(ErrorKind::kInvalid, "bad_url", fmt::format("the URL {}", why), false));
  };
  const auto parsed = boost::urls::parse_uri(boost::urls::string_view(text.data(), text.size()));
  if (!parsed) return bad("is malformed; expected http(s)://host[:port]/path");
  const auto& url = *parsed;
  Endpoint endpoint;
  endpoint.tls = url.scheme_id() == boost::urls::scheme::https;
  if (!endpoint.tls && url.scheme_id() != boost::urls::scheme::http)
    return bad("has a wrong scheme; expected http or https");
  endpoint.host = url.host_address();
  if (endpoint.host.empty()) return bad("has no host");
  endpoint.port = url.has_port() ? std::string(url.port()) : endpoint.tls ? "443" : "80";
  // Not port_number(): it does not reject ports over 65535.
  const auto port = http::detail::parse_parameter<std::uint16_t>(endpoint.port);
  if (!port || *port == 0) return bad("has a bad port; expected 1 to 65535");
  endpoint.host_header = std::string(url.encoded_host_and_port());
  endpoint.target = std::string(url.encoded_target());
  if (!endpoint.target.starts_with('/')) endpoint.target.insert(0, "/");
  if (url.has_userinfo()) endpoint.basic_credentials = fmt::format("{}:{}", url.user(), url.password());
  return endpoint;
}

TlsContext::TlsContext(const std::string& ca_file) {
  context_.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                       asio::ssl::context::no_tlsv1_1);
  context_.set_verify_mode(asio::ssl::verify_peer);
  if (ca_file.empty()) return;
  boost::system::error_code ec;
  context_.load_verify_file(ca_file, ec);
  if (ec) throw Exception(invalid("bad_ca_file", fmt::format("cannot load {}: {}", ca_file, ec.message())));
}

asio::ssl::context& TlsContext::get() {
  if (!trusts_system_) context_.set_default_verify_paths();
  trusts_system_ = true;
  return context_;
}

struct Deadline::State {
  explicit State(Executor executor) : timer(executor) {}
  asio::steady_timer timer;
  ClientConnection* connection = nullptr;
  std::uint64_t turn = 0;  // a timer that was moved may still fire once for its old time
  bool expired = false;
};

Deadline::Deadline(Executor executor) : state_(std::make_shared<State>(executor)) {}

Deadline::~Deadline() {
  state_->connection = nullptr;
  state_->timer.cancel();
}

bool Deadline::expired() const {
  return state_->expired;
}

void Deadline::watch(ClientConnection& connection, SteadyTime when) {
  state_->connection = &connection;
  state_->timer.expires_at(when);
  state_->timer.async_wait([state = state_, turn = ++state_->turn](const boost::system::error_code& ec) {
    if (ec || turn != state->turn || state->connection == nullptr) return;
    state->expired = true;
    state->connection->close();
  });
}

ClientConnection::ClientConnection(Executor executor, const Endpoint& endpoint, TlsContext& tls,
                                   const ClientOptions& options)
    : executor_(executor),
      options_(options),
      stream_(endpoint.tls ? std::variant<Socket, TlsStream>(std::in_place_index<1>, Socket(executor), tls.get())
                           : std::variant<Socket, TlsStream>(std::in_place_index<0>, executor)),
      buffer_(options.max_header_bytes + kReadAhead) {}

ClientConnection::Socket& ClientConnection::socket() {
  if (auto* tls = std::get_if<TlsStream>(&stream_)) return tls->next_layer();
  return std::get<Socket>(stream_);
}

void ClientConnection::close() {
  reusable_ = false;
  boost::system::error_code ignored;  // the connection is not used again
  socket().close(ignored);
}

awaitable<Result<void>> ClientConnection::connect(const Endpoint& endpoint, SteadyTime until) {
  auto endpoints = co_await resolve(executor_, endpoint, until);
  if (!endpoints) co_return fail(endpoints.error());
  if (options_.allows_address) {
    std::erase_if(*endpoints, [this](const tcp::endpoint& peer) { return !options_.allows_address(peer.address()); });
    if (endpoints->empty()) {
      co_return fail(sent_error(ErrorKind::kForbidden, "address_not_allowed",
                                fmt::format("{} has no address that may be connected to", endpoint.host), false));
    }
  }
  Deadline deadline(executor_);
  deadline.watch(*this, until);
  const auto [ec, peer] = co_await asio::async_connect(socket(), *endpoints, use_tuple);
  if (deadline.expired()) {
    co_return fail(sent_error(ErrorKind::kTimeout, "timeout",
                              fmt::format("{} did not accept the connection in time", endpoint.origin()), false));
  }
  boost::system::error_code failed = ec;
  if (!failed) socket().set_option(tcp::no_delay(true), failed);
  if (failed) {
    co_return fail(sent_error(ErrorKind::kUnavailable, "connect_failed",
                              fmt::format("cannot connect to {}: {}", endpoint.origin(), failed.message()), false));
  }
  if (endpoint.tls) co_return co_await handshake(endpoint, deadline);
  co_return Result<void>();
}

awaitable<Result<void>> ClientConnection::handshake(const Endpoint& endpoint, Deadline& deadline) {
  auto& stream = std::get<TlsStream>(stream_);
  const auto failed = [&](std::string_view why) {
    return fail(sent_error(ErrorKind::kUnavailable, "tls_failed",
                           fmt::format("no trusted connection to {}: {}", endpoint.origin(), why), false));
  };
  boost::system::error_code not_an_address;
  asio::ip::make_address(endpoint.host, not_an_address);
  // Server name indication is for names only (RFC 6066).
  if (not_an_address && SSL_set_tlsext_host_name(stream.native_handle(), endpoint.host.c_str()) != 1) {
    co_return failed("the host name cannot be sent as server name indication");
  }
  stream.set_verify_callback(asio::ssl::host_name_verification(endpoint.host));
  const auto [ec] = co_await stream.async_handshake(TlsStream::client, use_tuple);
  if (deadline.expired()) {
    co_return fail(sent_error(ErrorKind::kTimeout, "timeout",
                              fmt::format("the TLS handshake with {} took too long", endpoint.origin()), false));
  }
  if (!ec) co_return Result<void>();
  const auto verdict = SSL_get_verify_result(stream.native_handle());
  co_return failed(verdict == X509_V_OK ? ec.message() : X509_verify_cert_error_string(verdict));
}

bool ClientConnection::looks_alive() {
  if (!socket().is_open()) return false;
  char byte = 0;
  const auto n = ::recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
  // A TLS peer may have sent a session ticket. A plain peer must not send anything before the next request.
  return n > 0 && std::holds_alternative<TlsStream>(stream_);
}

awaitable<Result<ClientResponse>> ClientConnection::exchange(const ClientRequest& request, std::string_view head,
                                                             SteadyTime until, bool& stale) {
  reusable_ = false;
  if (auto* tls = std::get_if<TlsStream>(&stream_)) co_return co_await exchange_on(*tls, request, head, until, stale);
  co_return co_await exchange_on(std::get<Socket>(stream_), request, head, until, stale);
}

template <class Stream>
awaitable<Result<ClientResponse>> ClientConnection::exchange_on(Stream& stream, const ClientRequest& request,
                                                                std::string_view head, SteadyTime until, bool& stale) {
  Deadline deadline(executor_);
  deadline.watch(*this, until);
  const auto too_late = [] {
    return fail(sent_error(ErrorKind::kTimeout, "timeout", "the answer did not come in time", true));
  };
  const std::array<asio::const_buffer, 2> out{asio::buffer(head), asio::buffer(request.body)};
  const auto [write_ec, written] = co_await asio::async_write(stream, out, use_tuple);
  if (deadline.expired()) co_return too_late();
  if (write_ec) {
    const bool sent = written > 0 || std::same_as<Stream, TlsStream>;
    stale = true;
    co_return fail(sent_error(ErrorKind::kUnavailable, "connection_lost",
                              fmt::format("the request could not be sent: {}", write_ec.message()), sent));
  }
  if (request.on_body) {
    const auto patience = request.timeout.value_or(options_.total_timeout);
    co_return co_await read_pieces(stream, request, deadline, patience, stale);
  }
  for (unsigned interim = 0; interim <= kMaxInterim; ++interim) {
    beast_http::response_parser<beast_http::string_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(options_.max_header_bytes));
    parser.body_limit(options_.max_body_bytes);
    parser.skip(request.method == "HEAD");
    const auto [ec, read] = co_await beast_http::async_read(stream, buffer_, parser, use_tuple);
    if (deadline.expired()) co_return too_late();
    if (ec) {
      stale = !parser.got_some() && interim == 0 && ec != beast_http::error::buffer_overflow;
      co_return fail(read_error(ec));
    }
    if (const auto status = parser.get().result_int(); status >= 100 && status < 200 && status != 101) continue;
    const bool keep_alive = parser.keep_alive();
    auto message = parser.release();
    auto response = head_of(message);
    response.body = std::move(message.body());
    reusable_ = keep_alive && message.result_int() != 101 && buffer_.size() == 0;
    co_return response;
  }
  co_return fail(
      sent_error(ErrorKind::kUnavailable, "bad_response", "the server sent only interim (1xx) answers", true));
}

// The connection is not used again: a stream that the caller ends has more to come.
template <class Stream>
awaitable<Result<ClientResponse>> ClientConnection::read_pieces(Stream& stream, const ClientRequest& request,
                                                                Deadline& deadline, std::chrono::milliseconds patience,
                                                                bool& stale) {
  const auto failed = [&](const boost::system::error_code& ec) {
    if (!deadline.expired()) return fail(read_error(ec));
    return fail(sent_error(ErrorKind::kTimeout, "timeout", "the answer stopped", true));
  };
  beast_http::response_parser<beast_http::empty_body> head;
  head.header_limit(static_cast<std::uint32_t>(options_.max_header_bytes));
  const auto [head_ec, head_bytes] = co_await beast_http::async_read_header(stream, buffer_, head, use_tuple);
  stale = head_ec && !head.got_some();
  if (head_ec || deadline.expired()) co_return failed(head_ec);
  auto response = head_of(head.get());
  if (response.status < 200 || response.status > 299) {
    beast_http::response_parser<beast_http::string_body> rest(std::move(head));
    rest.body_limit(options_.max_body_bytes);
    const auto [ec, bytes] = co_await beast_http::async_read(stream, buffer_, rest, use_tuple);
    if (ec || deadline.expired()) co_return failed(ec);
    response.body = std::move(rest.get().body());
    co_return response;
  }
  beast_http::response_parser<beast_http::buffer_body> body(std::move(head));
  body.body_limit(boost::none);
  std::array<char, 16 * 1024> piece;
  while (!body.is_done()) {
    deadline.watch(*this, std::chrono::steady_clock::now() + patience);
    body.get().body().data = piece.data();
    body.get().body().size = piece.size();
    const auto [ec, bytes] = co_await beast_http::async_read_some(stream, buffer_, body, use_tuple);
    if ((ec && ec != beast_http::error::need_buffer) || deadline.expired()) co_return failed(ec);
    const std::string_view got(piece.data(), piece.size() - body.get().body().size);
    if (!got.empty() && !request.on_body(got)) break;
  }
  co_return response;
}

}  // namespace fencepost::http::detail
