// The part of Connection that turns a request into a response: route, caller, handler, stream.
#include <fmt/format.h>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/text.hpp"
#include "http/connection.hpp"
#include "http/errors.hpp"
#include "http/problem.hpp"
#include "runtime/log.hpp"

namespace fencepost::http {
namespace {

// An exception as an Error. The text of a foreign exception may contain anything, so it is only logged: the client does
// not get the message of a kInternal error.
Error to_error(const std::exception_ptr& exception) {
  auto error = error_of(exception);
  if (error.code.empty()) error.code = "internal";
  return error;
}

// The encoding in which the body cannot be read: bodies are read as they come, so a compressed one would look like
// broken JSON. Nothing if there is none. A body of a GET or a DELETE is never read.
std::optional<std::string_view> unreadable_encoding(const Request& request) {
  if (request.body().empty() || request.verb() == Verb::kGet || request.verb() == Verb::kDelete) return std::nullopt;
  for (const auto encoding : request.headers("Content-Encoding")) {
    if (!equal_ignoring_case(encoding, "identity")) return encoding;
  }
  return std::nullopt;
}

Response encoding_refusal(const Request& request, std::string_view encoding) {
  const auto error =
      invalid("unsupported_encoding",
              fmt::format("Content-Encoding {} is not supported; send the body without compression", quote(encoding)))
          .with("header", "Content-Encoding");
  return make_problem(415, error, request.id()).with("Accept-Encoding", "identity");
}

}  // namespace

awaitable<Response> Connection::answer() {
  const auto match = loop_.router().match(request_);
  if (const auto* found = std::get_if<Router::Found>(&match)) {
    metrics_ = &loop_.route_metrics(found->index);
    if (const auto encoding = unreadable_encoding(request_)) co_return encoding_refusal(request_, *encoding);
    co_return co_await authenticate_and_handle(loop_.router().route(found->index));
  }
  co_return no_route(match);
}

Response Connection::no_route(const Router::Match& match) {
  if (const auto* bad = std::get_if<Error>(&match)) return make_problem(*bad, request_.id());
  if (const auto* verbs = std::get_if<Router::NoVerb>(&match)) {
    if (request_.verb() == Verb::kOptions) return Response::no_content().with("Allow", verbs->allow);
    const auto error = invalid("method_not_allowed", fmt::format("this path serves only {}", verbs->allow));
    return make_problem(405, error, request_.id()).with("Allow", verbs->allow);
  }
  if (request_.path() == "*" && request_.verb() == Verb::kOptions) return Response::no_content();
  return make_problem(not_found("no_such_path", "no route has this path; see /openapi.json"), request_.id());
}

awaitable<Response> Connection::authenticate_and_handle(const Route& route) {
  if (route.access.is_open()) co_return co_await call(route);
  std::exception_ptr failure;
  std::optional<Result<Principal>> caller;
  try {
    caller = co_await loop_.authenticator()->authenticate(request_);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) co_return refusal(route, to_error(failure));
  if (!*caller) co_return refusal(route, caller->error());
  if (const auto allowed = route.access.check(**caller); !allowed) co_return refusal(route, allowed.error());
  request_.set_principal(std::move(**caller));
  co_return co_await call(route);
}

// Turns every exception of a handler into a response; account() logs it.
awaitable<Response> Connection::call(const Route& route) {
  std::exception_ptr failure;
  try {
    co_return co_await route.handler(request_);
  } catch (...) {
    failure = std::current_exception();
  }
  // The server's stop cancelled the handler: there is no answer to send.
  if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none) {
    std::rethrow_exception(failure);
  }
  co_return refusal(route, to_error(failure));
}

Response Connection::refusal(const Route& route, const Error& error) const {
  return route.refuse ? route.refuse(error, request_) : make_problem(error, request_.id());
}

awaitable<Connection::Next> Connection::run_stream(Response response) {
  using namespace asio::experimental::awaitable_operators;
  if (loop_.draining()) {
    response =
        make_problem(unavailable("stopping", "the server is stopping").after(std::chrono::seconds(1)), request_.id());
    append(response, false);
    account(response);
    if (co_await flush()) co_await linger();
    co_return Next::kClose;
  }
  append(response, false);
  account(response);
  if (!co_await flush()) co_return Next::kClose;
  disarm(Phase::kStreaming);
  EventStream stream(*this, request_, co_await asio::this_coro::executor);
  // The first branch that ends cancels the others: the function, the disconnect watch, or a failed heartbeat.
  auto function = run_stream_function(std::move(response.stream), stream);
  auto beat = stream.heartbeat(loop_.options().heartbeat);
  auto ended = std::move(function) || watch_peer() || std::move(beat);
  co_await std::move(ended);
  co_return Next::kClose;
}

// Returns normally even when the function throws: a failed branch would leave the other two running.
awaitable<> Connection::run_stream_function(StreamFunction function, EventStream& stream) {
  std::exception_ptr failure;
  try {
    co_await function(stream);
  } catch (...) {
    failure = std::current_exception();
  }
  const auto state = co_await asio::this_coro::cancellation_state;
  if (!failure || state.cancelled() != asio::cancellation_type::none) co_return;
  log::error("event stream failed", to_error(failure),
             {{"httpRequestId", request_.id()}, {"path", request_.log_path()}, {"remote", request_.remote()}});
}

// Ends when the client of an event stream disconnects or the server drains. Bytes from the client are ignored.
awaitable<> Connection::watch_peer() {
  std::array<char, 512> ignored{};
  for (;;) {
    const auto [ec, n] = co_await stream_.read_some(asio::buffer(ignored));
    if (ec) co_return;
  }
}

awaitable<bool> Connection::write(std::string bytes) {
  out_ = std::move(bytes);
  const bool sent = co_await flush();
  disarm(Phase::kStreaming);
  // A drain that began during this write has not cancelled anything, so check for it here.
  co_return sent && !loop_.draining();
}

}  // namespace fencepost::http
