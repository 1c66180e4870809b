// One client's connection: reads requests, answers them in order.
//
// A connection has no timer of its own: each phase sets a deadline, and the loop checks the deadlines of all its
// connections periodically. This saves arming and disarming a timer for every read and write.
#pragma once

#include <optional>
#include <string>

#include <boost/beast/core/flat_buffer.hpp>

#include "http/loop_server.hpp"
#include "http/request_parser.hpp"
#include "http/server_stream.hpp"
#include "http/sse.hpp"

namespace fencepost::http {

class Connection final : public ConnectionHook, private StreamChannel {
 public:
  Connection(LoopServer& loop, Socket socket);

  // Serves requests until the client closes, a limit is exceeded or the server drains.
  awaitable<> run();
  // Instead of run: sends this problem without reading a request, then closes.
  awaitable<> turn_away(Error error);

  // Called by the loop, between this coroutine's steps.
  void expire_if_due(SteadyTime now);
  void begin_drain();

 private:
  enum class Phase { kIdle, kReading, kHandling, kWriting, kStreaming, kClosing };
  enum class Next { kKeepAlive, kClose };

  bool prepare_socket();
  awaitable<bool> shake_hands();
  awaitable<Next> serve_one();
  awaitable<bool> wait_for_first_byte();
  awaitable<bool> read_head();
  awaitable<bool> read_body();
  awaitable<bool> read_some(std::size_t at_most);
  awaitable<bool> refuse();
  awaitable<bool> meet_expectation();
  void take_request_id();

  awaitable<Response> answer();
  awaitable<Response> authenticate_and_handle(const Route& route);
  awaitable<Response> call(const Route& route);
  Response refusal(const Route& route, const Error& error) const;
  Response no_route(const Router::Match& match);

  awaitable<Next> run_stream(Response response);
  awaitable<> run_stream_function(StreamFunction function, EventStream& stream);
  awaitable<> watch_peer();
  awaitable<bool> write(std::string bytes) override;

  void append(Response& response, bool keep_alive);
  void account(const Response& response);
  awaitable<bool> flush();
  awaitable<> linger();
  awaitable<> say_goodbye();

  void arm(Phase phase, std::chrono::milliseconds timeout);
  void disarm(Phase phase);

  LoopServer& loop_;
  ServerStream stream_;
  boost::beast::flat_buffer in_;
  std::string out_;
  Request request_;
  std::optional<RequestParser> parser_;
  Phase phase_ = Phase::kIdle;
  SteadyTime deadline_ = SteadyTime::max();
  bool expired_ = false;
  bool served_any_ = false;
  bool ended_ = false;  // the client was told that no more bytes will come
  RouteMetrics* metrics_ = nullptr;
  SteadyTime started_{};
};

// Appends status line, headers and body. `Content-Length`, `Date`, `Connection` and the headers that every
// response carries are added here.
void append_response(std::string& out, const Response& response, const Request& request, std::string_view date,
                     bool keep_alive);

}  // namespace fencepost::http
