#include "http/sse.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace fencepost::http {
namespace {

void append_field(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
    throw Exception(internal("bad_event", fmt::format("the event's {} has a line break or NUL", name)));
  }
  out += name;
  out += ": ";
  out += value;
  out += '\n';
}

}  // namespace

std::string format_event(std::string_view id, std::string_view event, std::string_view data) {
  std::string out;
  out.reserve(data.size() + id.size() + event.size() + 32);
  append_field(out, "id", id);
  append_field(out, "event", event);
  // The format ends a line at CR, LF or CRLF alike.
  for (;;) {
    const auto end = std::min(data.find_first_of("\r\n"), data.size());
    out += "data: ";
    out += data.substr(0, end);
    out += '\n';
    if (end == data.size()) break;
    data.remove_prefix(end + (data.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  out += '\n';
  return out;
}

EventStream::EventStream(StreamChannel& channel, const Request& request, asio::any_io_executor executor)
    : channel_(channel), request_(request), idle_(executor), last_write_(std::chrono::steady_clock::now()) {
  const auto header = request.header("Last-Event-ID");
  const auto value = header ? header : request.query("lastEventId");
  if (value) last_event_id_ = std::string(*value);
}

awaitable<bool> EventStream::send(std::string_view id, std::string_view event, std::string_view data) {
  return write(format_event(id, event, data));
}

awaitable<bool> EventStream::comment(std::string_view text) {
  std::string line;
  append_field(line, "", text);
  line += '\n';
  return write(std::move(line));
}

awaitable<bool> EventStream::retry(std::chrono::milliseconds delay) {
  return write(fmt::format("retry: {}\n\n", delay.count()));
}

awaitable<bool> EventStream::write(std::string bytes) {
  while (writing_ && open_) {
    idle_.expires_at(asio::steady_timer::time_point::max());
    co_await idle_.async_wait(use_tuple);
  }
  if (!open_) co_return false;
  writing_ = true;
  open_ = co_await channel_.write(std::move(bytes));
  writing_ = false;
  last_write_ = std::chrono::steady_clock::now();
  idle_.cancel();
  co_return open_;
}

awaitable<> EventStream::heartbeat(std::chrono::milliseconds interval) {
  asio::steady_timer timer(idle_.get_executor());
  while (open_) {
    timer.expires_at(last_write_ + interval);
    co_await timer.async_wait(use_tuple);
    const bool silent = std::chrono::steady_clock::now() >= last_write_ + interval;
    if (silent && !writing_ && !co_await write(": keep-alive\n\n")) co_return;
    // No heartbeat during a write: the write has its own timeout.
    if (silent && writing_) last_write_ = std::chrono::steady_clock::now();
  }
}

}  // namespace fencepost::http
