#include "tests/support/event_listener.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json/parse.hpp>

#include "http/sse_reader.hpp"

namespace fencepost::test {

EventListener::EventListener(const std::string& url, const std::string& key, const std::string& after) {
  http::ClientRequest request;
  request.url = url;
  request.headers = {{"Authorization", "Bearer " + key}};
  if (!after.empty()) request.headers.emplace_back("Last-Event-ID", after);
  request.timeout = std::chrono::minutes(2);
  asio::co_spawn(context_, listen(std::move(request)), asio::detached);
  thread_ = std::thread([this] { context_.run(); });
}

EventListener::~EventListener() {
  context_.stop();
  thread_.join();
}

awaitable<> EventListener::listen(http::ClientRequest request) {
  http::SseReader reader(
      [this](const http::SseReader::Message& message) {
        const std::lock_guard lock(mutex_);
        last_id_ = message.id;
        if (!message.data.empty()) events_.push_back(boost::json::parse(message.data));
      },
      [this](std::string_view comment) {
        const std::lock_guard lock(mutex_);
        if (comment != "keep-alive") comments_.emplace_back(comment);
      });
  request.on_body = [&](std::string_view piece) {
    {
      const std::lock_guard lock(mutex_);
      connected_ = true;
    }
    return reader.feed(piece);
  };
  co_await client_.send(std::move(request));
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

std::vector<boost::json::value> EventListener::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::vector<std::string> EventListener::ids() const {
  std::vector<std::string> out;
  for (const auto& event : events()) out.emplace_back(event.at("id").as_string());
  return out;
}

std::vector<std::string> EventListener::comments() const {
  const std::lock_guard lock(mutex_);
  return comments_;
}

std::string EventListener::last_id() const {
  const std::lock_guard lock(mutex_);
  return last_id_;
}

bool EventListener::connected() const {
  const std::lock_guard lock(mutex_);
  return connected_;
}

bool EventListener::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace fencepost::test
