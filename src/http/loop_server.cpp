#include "http/loop_server.hpp"

#include <algorithm>
#include <random>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "http/connection.hpp"
#include "http/server_certificate.hpp"

namespace fencepost::http {
namespace {

constexpr std::size_t kMaxRejections = 64;

// Overruns of a deadline stay under a tenth of the timeout; the sweep's own cost stays negligible.
std::chrono::milliseconds sweep_interval(const ServerOptions& options) {
  const auto shortest = std::min({options.idle_timeout, options.header_timeout, options.body_timeout,
                                  options.write_timeout, options.linger_timeout});
  return std::clamp(shortest / 10, std::chrono::milliseconds(5), std::chrono::milliseconds(500));
}

std::uint64_t random_prefix() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace

RouteMetrics::RouteMetrics(Metrics& metrics, std::string route) : metrics_(metrics), route_(std::move(route)) {}

void RouteMetrics::record(Verb verb, unsigned status, std::chrono::steady_clock::duration took) {
  const auto key = (static_cast<std::uint32_t>(verb) << 16) | status;
  auto found = std::ranges::find(counters_, key, &std::pair<std::uint32_t, Metrics::Counter*>::first);
  if (found == counters_.end()) {
    auto& counter = metrics_.counter(
        "http_requests_total", "Requests answered",
        {{"method", std::string(to_string(verb))}, {"route", route_}, {"status", std::to_string(status)}});
    found = counters_.insert(found, {key, &counter});
  }
  found->second->Increment();
  if (duration_ == nullptr) {
    duration_ = &metrics_.latency("http_request_duration_seconds", "Time from a request's last byte to its answer",
                                  {{"route", route_}});
  }
  duration_->Observe(std::chrono::duration<double>(took).count());
}

ConnectionSlot::ConnectionSlot(std::atomic<std::size_t>& open, Metrics::Gauge& gauge) : open_(&open), gauge_(gauge) {
  ++*open_;
  gauge_.Increment();
}

ConnectionSlot::ConnectionSlot(ConnectionSlot&& other) noexcept
    : open_(std::exchange(other.open_, nullptr)), gauge_(other.gauge_) {}

ConnectionSlot::~ConnectionSlot() {
  if (open_ == nullptr) return;
  --*open_;
  gauge_.Decrement();
}

LoopServer::LoopServer(Executor executor, const ServerOptions& options, const Router& router,
                       Authenticator* authenticator, Metrics& metrics)
    : executor_(executor),
      options_(options),
      router_(router),
      authenticator_(authenticator),
      connections_gauge_(metrics.gauge("http_connections", "Connections open")),
      rejected_(metrics.counter("http_connections_rejected_total", "Connections refused because of max_connections")),
      failed_handshakes_(metrics.counter("http_tls_handshakes_failed_total", "TLS handshakes that failed")),
      tasks_(executor, "http connections", options.max_connections),
      rejections_(executor, "http rejections", kMaxRejections),
      watch_(executor, "http deadlines", 1),
      id_prefix_(random_prefix()) {
  for (const auto& entry : router.routes()) route_metrics_.emplace_back(metrics, entry.pattern);
  route_metrics_.emplace_back(metrics, "unmatched");
}

LoopServer::~LoopServer() = default;

void LoopServer::start() {
  [[maybe_unused]] const bool started = watch_.spawn(watch_deadlines());
}

void LoopServer::adopt(Socket socket, ConnectionSlot slot) {
  if (draining_) return;
  if (!tasks_.spawn(serve(std::move(socket), std::move(slot)))) rejected_.Increment();
}

awaitable<> LoopServer::serve(Socket socket, ConnectionSlot slot) {
  const ConnectionSlot held = std::move(slot);
  Connection connection(*this, std::move(socket));
  connections_.push_back(connection);
  co_await connection.run();
}

void LoopServer::reject(Socket socket) {
  rejected_.Increment();
  // At most kMaxRejections clients get the 503 at once; further sockets are closed without an answer.
  [[maybe_unused]] const bool told = !draining_ && rejections_.spawn(turn_away(std::move(socket)));
}

awaitable<> LoopServer::turn_away(Socket socket) {
  Connection connection(*this, std::move(socket));
  connections_.push_back(connection);
  co_await connection.turn_away(unavailable("too_many_connections", "the server has reached http.max_connections")
                                    .after(std::chrono::seconds(1)));
}

awaitable<> LoopServer::watch_deadlines() {
  asio::steady_timer timer(executor_);
  const auto interval = sweep_interval(options_);
  for (;;) {
    timer.expires_after(interval);
    co_await timer.async_wait(asio::use_awaitable);
    const auto now = std::chrono::steady_clock::now();
    for (auto& connection : connections_) connection.expire_if_due(now);
  }
}

awaitable<> LoopServer::begin_drain() {
  draining_ = true;
  for (auto& connection : connections_) connection.begin_drain();
  co_return;
}

awaitable<> LoopServer::finish(SteadyTime deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  co_await tasks_.stop(std::max(left, std::chrono::milliseconds(0)));
  co_await rejections_.stop(std::chrono::milliseconds(0));
  co_await watch_.stop(std::chrono::milliseconds(0));
}

std::shared_ptr<asio::ssl::context> LoopServer::tls_context() const {
  return options_.certificate != nullptr ? options_.certificate->context() : nullptr;
}

std::string LoopServer::make_request_id() {
  std::string id;
  fmt::format_to(std::back_inserter(id), FMT_COMPILE("{:016x}-{:x}"), id_prefix_, ++id_counter_);
  return id;
}

std::string_view LoopServer::date() {
  const auto now = std::time(nullptr);
  if (now != date_second_) {
    date_second_ = now;
    std::tm parts{};
    gmtime_r(&now, &parts);
    date_size_ = std::strftime(date_text_.data(), date_text_.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  }
  return {date_text_.data(), date_size_};
}

}  // namespace fencepost::http
