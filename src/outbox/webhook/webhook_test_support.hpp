// A receiver of webhooks that runs in the test's process.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "http/router.hpp"
#include "http/server.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::outbox::testing {

struct Received {
  std::string id, timestamp, signature, content_type, length, body;
  std::vector<std::string> events;  // ids of the envelopes
  std::vector<std::string> subjects;
  std::vector<std::string> types;
  unsigned answered = 0;
  std::chrono::steady_clock::time_point at;
};

class HttpReceiver {
 public:
  // Decides the status of the answer. Called on the receiver's loop.
  using Decide = std::function<unsigned(const Received&)>;

  explicit HttpReceiver(std::uint16_t port = 0) {
    router_.add(
        {http::Verb::kPost, "/hook", http::Access::open(), [this](http::Request& request) { return take(request); }});
    server_ = std::make_unique<http::Server>(runtime_, http::ServerOptions{.host = "127.0.0.1", .port = port}, router_,
                                             nullptr, metrics_);
    runtime_.start();
    runtime_.run_on(0, [](http::Server& server) -> awaitable<> {
      if (auto started = server.start(); !started) throw Exception(started.error());
      co_return;
    }(*server_));
  }
  ~HttpReceiver() {
    runtime_.run_on(0, server_->stop(std::chrono::seconds(1)));
    runtime_.stop();
  }

  std::uint16_t port() const { return server_->port(); }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/hook", port()); }
  void decide(Decide decide) {
    const std::lock_guard lock(mutex_);
    decide_ = std::move(decide);
  }
  void with_header(std::string name, std::string value) {
    const std::lock_guard lock(mutex_);
    headers_.emplace_back(std::move(name), std::move(value));
  }

  std::vector<Received> all() const {
    const std::lock_guard lock(mutex_);
    return received_;
  }
  // Ids of events that were answered with 2xx, in order, with repeats.
  std::vector<std::string> delivered() const {
    std::vector<std::string> out;
    for (const auto& request : all()) {
      if (request.answered < 300) out.insert(out.end(), request.events.begin(), request.events.end());
    }
    return out;
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return received_.size();
  }
  // For each subject, the ids that were delivered, in the order in which each came first.
  std::map<std::string, std::vector<std::int64_t>> by_subject() const {
    std::map<std::string, std::vector<std::int64_t>> out;
    for (const auto& request : all()) {
      if (request.answered >= 300) continue;
      for (std::size_t i = 0; i < request.events.size(); ++i) {
        auto& seen = out[request.subjects[i]];
        const auto seq = std::stoll(request.events[i]);
        if (std::ranges::find(seen, seq) == seen.end()) seen.push_back(seq);
      }
    }
    return out;
  }

 private:
  awaitable<http::Response> take(http::Request& request) {
    const auto header = [&](std::string_view name) { return std::string(request.header(name).value_or("")); };
    Received got{.id = header("webhook-id"),
                 .timestamp = header("webhook-timestamp"),
                 .signature = header("webhook-signature"),
                 .content_type = header("Content-Type"),
                 .length = header("Content-Length"),
                 .body = std::string(request.body()),
                 .at = std::chrono::steady_clock::now()};
    const auto document = boost::json::parse(got.body);
    const auto add = [&](const boost::json::value& event) {
      got.events.emplace_back(event.at("id").as_string());
      got.subjects.emplace_back(event.at("subject").as_string());
      got.types.emplace_back(event.at("type").as_string());
    };
    if (document.is_array()) {
      for (const auto& event : document.get_array()) add(event);
    } else {
      add(document);
    }
    const std::lock_guard lock(mutex_);
    got.answered = decide_ ? decide_(got) : 204;
    auto response = got.answered == 204 ? http::Response::no_content() : http::Response::text(got.answered, "x");
    for (const auto& [name, value] : headers_) response.with(name, value);
    received_.push_back(std::move(got));
    co_return response;
  }

  Metrics metrics_;
  http::Router router_;
  Runtime runtime_{{.threads = 1}};
  std::unique_ptr<http::Server> server_;
  mutable std::mutex mutex_;
  Decide decide_;
  std::vector<std::pair<std::string, std::string>> headers_;
  std::vector<Received> received_;
};

}  // namespace fencepost::outbox::testing
