// Server-sent events (the WHATWG text/event-stream format).
//
//   co_return Response::events([this](EventStream& stream) { return follow(stream); });
//
// The function runs on the connection's loop after the head is sent; when it returns, the stream ends. When the
// client disconnects, reads too slowly, or the server stops, `send` returns false and what the function awaits is
// cancelled (asio's operation_aborted), so the function never has to poll. Between events the server sends comments,
// so that the idle timers of proxies and clients do not expire.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"
#include "runtime/async.hpp"

namespace fencepost::http {

// The output of a stream; the connection implements it.
class StreamChannel {
 public:
  virtual ~StreamChannel() = default;
  // One call at a time. False when the peer has disconnected or did not read in time.
  virtual awaitable<bool> write(std::string bytes) = 0;
};

// The text of one event; `id` and `event` are left out when empty, each line of `data` gets its own field.
// Throws Exception `bad_event` for a line break or NUL in `id` or `event`: these must never contain a user's text.
std::string format_event(std::string_view id, std::string_view event, std::string_view data);

// Pinned to the connection's loop.
class EventStream {
 public:
  EventStream(StreamChannel& channel, const Request& request, asio::any_io_executor executor);

  // False when the stream has ended: the function should return. Copies the arguments before it returns.
  awaitable<bool> send(std::string_view id, std::string_view event, std::string_view data);
  // Sends events that are formatted already, several at once if the caller has them. As `send`.
  awaitable<bool> send_formatted(std::string events) { return write(std::move(events)); }
  // A line that clients ignore and people read. Throws `bad_event` for a line break.
  awaitable<bool> comment(std::string_view text);
  // Asks the client to wait this long before it reconnects.
  awaitable<bool> retry(std::chrono::milliseconds delay);

  // The last event that a reconnecting client has received: the `Last-Event-ID` header, or the query parameter
  // `lastEventId` (a browser's EventSource cannot set headers on its first request). Nothing when neither is given.
  const std::optional<std::string>& last_event_id() const { return last_event_id_; }
  const Request& request() const { return request_; }

  // The server runs it concurrently with the function: sends a comment whenever nothing was sent for `interval`.
  // Returns when a write fails.
  awaitable<> heartbeat(std::chrono::milliseconds interval);

 private:
  awaitable<bool> write(std::string bytes);

  StreamChannel& channel_;
  const Request& request_;
  std::optional<std::string> last_event_id_;
  asio::steady_timer idle_;  // a writer waits on it while another write is in flight
  std::chrono::steady_clock::time_point last_write_;
  bool writing_ = false;
  bool open_ = true;
};

}  // namespace fencepost::http
