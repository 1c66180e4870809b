#include "node/listeners.hpp"

namespace fencepost {
namespace {

constexpr std::size_t kScrapers = 64;  // connections to a /metrics of its own

http::ServerOptions server_options(const HttpConfig& config, const http::ServerCertificate* certificate) {
  return {.host = config.host,
          .port = config.port,
          .certificate = certificate,
          .max_connections = config.max_connections,
          .max_header_bytes = config.max_header_bytes,
          .max_body_bytes = config.max_body_bytes,
          .idle_timeout = config.idle_timeout,
          .header_timeout = config.read_timeout,
          .body_timeout = config.read_timeout,
          .write_timeout = config.write_timeout};
}

http::ServerOptions metrics_options(const Config& config, const http::ServerCertificate* certificate) {
  auto options = server_options(config.http, certificate);
  options.host = config.metrics.listen->host;
  options.port = config.metrics.listen->port;
  options.max_connections = kScrapers;
  return options;
}

MetricsRoute metrics_route(const MetricsConfig& config) {
  return config.require_key ? MetricsRoute::kForKeys : MetricsRoute::kOpen;
}

std::unique_ptr<http::ServerCertificate> make_certificate(Runtime& runtime, const HttpConfig& config,
                                                          Metrics& metrics) {
  if (config.tls_certificate_path.empty()) return nullptr;
  return std::make_unique<http::ServerCertificate>(
      runtime.executor(0),
      http::CertificateFiles{.certificate_path = config.tls_certificate_path, .key_path = config.tls_key_path},
      metrics);
}

}  // namespace

MetricsRoute metrics_route_of_api(const MetricsConfig& config) {
  return config.listen ? MetricsRoute::kNone : metrics_route(config);
}

Listeners::Listeners(Runtime& runtime, const Config& config, const http::Router& api,
                     http::Authenticator* authenticator, Metrics& metrics)
    : certificate_metrics_(metrics),
      certificate_(make_certificate(runtime, config.http, metrics)),
      api_(runtime, server_options(config.http, certificate_.get()), api, authenticator, metrics) {
  if (!config.metrics.listen) return;
  add_metrics_route(metrics_router_, metrics, metrics_route(config.metrics));
  metrics_.emplace(runtime, metrics_options(config, certificate_.get()), metrics_router_, authenticator, metrics);
}

Result<void> Listeners::start() {
  if (certificate_) {
    if (auto loaded = certificate_->load(); !loaded) return loaded;
    certificate_->start();
  }
  if (metrics_) {
    if (auto listening = metrics_->start(); !listening) return listening;
  }
  return api_.start();
}

awaitable<> Listeners::stop(std::chrono::milliseconds grace) {
  co_await api_.stop(grace);
  if (metrics_) co_await metrics_->stop(std::chrono::milliseconds(0));
  if (certificate_) co_await certificate_->stop();
}

}  // namespace fencepost
