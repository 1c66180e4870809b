#include "http/connection.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "http/problem.hpp"
#include "runtime/log.hpp"

namespace fencepost::http {
namespace {

constexpr std::size_t kReadSize = 4096;
constexpr std::size_t kBodyReadSize = 64 * 1024;
constexpr std::size_t kWriteSlice = 64 * 1024;
constexpr std::size_t kFlushAt = 64 * 1024;  // answers to pipelined requests are collected up to this size
// The buffer sizes that an idle connection may keep after larger requests.
constexpr std::size_t kIdleBuffer = 16 * 1024;
constexpr std::size_t kKeepBuffer = 64 * 1024;

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
           c == '-';
  });
}

std::string address_of(const Socket& socket) {
  boost::system::error_code ec;
  const auto endpoint = socket.remote_endpoint(ec);
  return ec ? std::string("unknown") : endpoint.address().to_string();
}

RequestParser::Limits limits_of(const ServerOptions& options) {
  return {options.max_header_bytes, options.max_header_count, options.max_body_bytes};
}

}  // namespace

Connection::Connection(LoopServer& loop, Socket socket)
    : loop_(loop),
      stream_(std::move(socket), loop.tls_context()),
      in_(std::max(loop.options().max_header_bytes, kBodyReadSize) + kBodyReadSize) {
  request_.set_remote(address_of(stream_.socket()));
}

void Connection::arm(Phase phase, std::chrono::milliseconds timeout) {
  phase_ = phase;
  expired_ = false;
  deadline_ = std::chrono::steady_clock::now() + timeout;
}

void Connection::disarm(Phase phase) {
  phase_ = phase;
  expired_ = false;
  deadline_ = SteadyTime::max();
}

// The deadline stays: a cancellation is lost on a TLS read that is between two reads of the socket, so the loop repeats
// it until the coroutine has noticed.
void Connection::expire_if_due(SteadyTime now) {
  if (now < deadline_) return;
  expired_ = true;
  boost::system::error_code ignored;  // the socket is closed either way
  stream_.socket().cancel(ignored);
}

void Connection::begin_drain() {
  if (phase_ != Phase::kIdle && phase_ != Phase::kStreaming) return;
  deadline_ = SteadyTime::min();
  expire_if_due(std::chrono::steady_clock::now());
}

// False when the client has already disconnected.
bool Connection::prepare_socket() {
  boost::system::error_code ec;
  stream_.socket().non_blocking(true, ec);
  if (!ec) stream_.socket().set_option(asio::ip::tcp::no_delay(true), ec);
  return !ec;
}

awaitable<bool> Connection::shake_hands() {
  if (!stream_.is_tls()) co_return true;
  arm(Phase::kIdle, loop_.options().header_timeout);
  const auto ec = co_await stream_.handshake();
  if (!ec && !expired_) co_return true;
  loop_.count_failed_handshake();
  log::debug("TLS handshake failed", {{"remote", request_.remote()}, {"error", ec.message()}});
  co_return false;
}

awaitable<> Connection::turn_away(Error error) {
  phase_ = Phase::kClosing;
  if (!prepare_socket() || !co_await shake_hands()) co_return;
  request_.set_id(loop_.make_request_id());
  append_response(out_, make_problem(error, request_.id()), request_, loop_.date(), false);
  if (co_await flush()) co_await linger();
}

awaitable<> Connection::run() {
  if (!prepare_socket() || !co_await shake_hands()) co_return;
  while (co_await serve_one() == Next::kKeepAlive) served_any_ = true;
  co_await say_goodbye();
}

// One request and its answer. kClose: the answer is sent, or cannot be sent, and the socket may be closed.
awaitable<Connection::Next> Connection::serve_one() {
  request_.reset();
  parser_.emplace(request_, limits_of(loop_.options()));
  metrics_ = nullptr;
  if (in_.size() == 0 && !co_await wait_for_first_byte()) co_return Next::kClose;

  const bool complete = co_await read_head() && co_await meet_expectation() && co_await read_body();
  started_ = std::chrono::steady_clock::now();
  if (!complete) {
    if (co_await refuse()) co_await linger();
    co_return Next::kClose;
  }

  disarm(Phase::kHandling);
  auto response = co_await answer();
  if (response.stream && request_.verb() != Verb::kHead) co_return co_await run_stream(std::move(response));

  const bool keep_alive = parser_->keep_alive() && !loop_.draining();
  append(response, keep_alive);
  account(response);
  if (keep_alive && in_.size() > 0 && out_.size() < kFlushAt) co_return Next::kKeepAlive;
  if (!co_await flush()) co_return Next::kClose;
  if (keep_alive) co_return Next::kKeepAlive;
  co_await linger();
  co_return Next::kClose;
}

awaitable<bool> Connection::wait_for_first_byte() {
  if (loop_.draining()) co_return false;
  // A client that has not sent any request yet gets a shorter timeout.
  const auto& options = loop_.options();
  if (in_.capacity() > kIdleBuffer) in_.shrink_to_fit();
  arm(Phase::kIdle, served_any_ ? options.idle_timeout : std::min(options.idle_timeout, options.header_timeout));
  co_return co_await read_some(kReadSize);
}

awaitable<bool> Connection::read_head() {
  arm(Phase::kReading, loop_.options().header_timeout);
  for (;;) {
    const auto bytes = in_.cdata();
    in_.consume(parser_->feed({static_cast<const char*>(bytes.data()), bytes.size()}));
    if (parser_->failure()) co_return false;
    if (parser_->head_done()) break;
    if (!co_await read_some(kReadSize)) co_return false;
  }
  take_request_id();
  co_return true;
}

awaitable<bool> Connection::read_body() {
  if (parser_->done()) co_return true;
  arm(Phase::kReading, loop_.options().body_timeout);
  while (!parser_->done()) {
    if (in_.size() > 0) {
      const auto bytes = in_.cdata();
      in_.consume(parser_->feed({static_cast<const char*>(bytes.data()), bytes.size()}));
      if (parser_->failure()) co_return false;
      if (parser_->done()) break;
    }
    if (!co_await read_some(kBodyReadSize)) co_return false;
  }
  co_return true;
}

awaitable<bool> Connection::read_some(std::size_t at_most) {
  // Send the collected answers before waiting for more requests.
  if (!out_.empty()) {
    const auto phase = phase_;
    const auto deadline = deadline_;
    if (!co_await flush()) co_return false;
    phase_ = phase;
    deadline_ = deadline;
  }
  if (expired_) co_return false;
  const auto space = in_.prepare(std::min(at_most, in_.max_size() - in_.size()));
  const auto [ec, n] = co_await stream_.read_some(space);
  if (ec) co_return false;
  in_.commit(n);
  co_return true;
}

void Connection::take_request_id() {
  const auto given = request_.header("X-Request-Id");
  request_.set_id(given && is_request_id(*given) ? std::string(*given) : loop_.make_request_id());
}

// `Expect: 100-continue`: the client waits for this interim answer before it sends the body.
awaitable<bool> Connection::meet_expectation() {
  if (parser_->done() || parser_->http_1_0()) co_return true;
  const auto expectation = request_.header("Expect");
  if (!expectation || in_.size() > 0) co_return true;
  out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  co_return co_await flush();
}

// Answers a request that could not be read with its error. False when the client has disconnected.
awaitable<bool> Connection::refuse() {
  if (request_.id().empty()) request_.set_id(loop_.make_request_id());
  std::optional<Response> response;
  if (const auto& failure = parser_->failure()) {
    response = make_problem(failure->status, failure->error, request_.id());
  } else if (expired_ && phase_ == Phase::kReading) {
    const auto slow = invalid("request_timeout", "the request did not arrive in time");
    response = make_problem(408, slow, request_.id());
  } else {
    co_return false;
  }
  append(*response, false);
  account(*response);
  co_return co_await flush();
}

void Connection::append(Response& response, bool keep_alive) {
  const auto before = out_.size();
  try {
    append_response(out_, response, request_, loop_.date(), keep_alive);
  } catch (const Exception& bug) {
    out_.resize(before);
    response = make_problem(bug.error(), request_.id());
    append_response(out_, response, request_, loop_.date(), keep_alive);
  }
}

void Connection::account(const Response& response) {
  const auto took = std::chrono::steady_clock::now() - started_;
  auto& metrics = metrics_ != nullptr ? *metrics_ : loop_.unmatched_metrics();
  metrics.record(request_.verb(), response.status, took);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  const auto log_line = [&](log::Level level, const Error* error) {
    const auto path = request_.log_path();  // the fields are views
    const log::Fields fields = {{"httpRequestId", request_.id()},
                                {"method", to_string(request_.verb())},
                                {"path", path},
                                {"status", response.status},
                                {"micros", micros},
                                {"remote", request_.remote()}};
    error != nullptr ? log::write(level, "request", *error, fields) : log::write(level, "request", fields);
  };
  // Do not log 501 and 505 as errors: a client causes them, so any client could fill the log.
  const bool ours = response.status >= 500 && (!response.error || response.error->kind != ErrorKind::kInvalid);
  if (ours) {
    log_line(log::Level::kError, response.error ? &*response.error : nullptr);
  } else if (log::level() <= log::Level::kDebug) {
    log_line(log::Level::kDebug, nullptr);
  }
}

awaitable<bool> Connection::flush() {
  std::string_view rest = out_;
  // Fast path: the kernel nearly always accepts all bytes at once.
  boost::system::error_code ec;
  rest.remove_prefix(stream_.write_now(rest, ec));
  if (ec) co_return false;
  while (!rest.empty()) {
    arm(Phase::kWriting, loop_.options().write_timeout);
    const auto slice = asio::buffer(rest.substr(0, kWriteSlice));
    const auto [error, n] = co_await stream_.write(slice);
    if (error || expired_) co_return false;
    rest.remove_prefix(n);
  }
  out_.clear();
  if (out_.capacity() > kKeepBuffer) out_.shrink_to_fit();
  co_return true;
}

// Closing a socket with unread bytes makes the kernel reset the connection, and the client may lose the answer.
// So shut down the sending side and read what the client still sends, up to linger_timeout.
awaitable<> Connection::linger() {
  ended_ = true;
  arm(Phase::kClosing, loop_.options().linger_timeout);
  co_await stream_.end();
  in_.clear();
  while (!expired_) {
    const auto space = in_.prepare(kBodyReadSize);
    const auto [error, n] = co_await stream_.socket().async_read_some(space, use_tuple);
    if (error) co_return;
  }
}

// Plain connections need none: the end of the socket says it all.
awaitable<> Connection::say_goodbye() {
  if (ended_ || !stream_.is_tls()) co_return;
  arm(Phase::kClosing, loop_.options().linger_timeout);
  co_await stream_.end_now();
}

}  // namespace fencepost::http
