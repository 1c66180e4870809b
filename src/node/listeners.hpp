// What a node listens on: the API, and /metrics at an address of its own if `metrics.listen` is set; both under TLS if
// there is a certificate.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "http/router.hpp"
#include "http/server.hpp"
#include "http/server_certificate.hpp"
#include "node/system_routes.hpp"

#include "config/config.hpp"

namespace fencepost {

// Where the API serves /metrics.
MetricsRoute metrics_route_of_api(const MetricsConfig& config);

class Listeners {
 public:
  // Keeps references: all of them outlive this object. Requires: `api` has all its routes.
  Listeners(Runtime& runtime, const Config& config, const http::Router& api, http::Authenticator* authenticator,
            Metrics& metrics);

  // On loop 0. Errors: those of http::Server::start, and `bad_certificate`.
  Result<void> start();
  // Call in any case; does nothing for what was not started. On loop 0.
  awaitable<> stop(std::chrono::milliseconds grace);

  // The API's; 0 before start.
  std::uint16_t port() const { return api_.port(); }
  std::string_view scheme() const { return certificate_ ? "https" : "http"; }

 private:
  http::CertificateMetrics certificate_metrics_;          // on every node, with TLS or without
  std::unique_ptr<http::ServerCertificate> certificate_;  // null: no TLS
  http::Server api_;
  http::Router metrics_router_;
  std::optional<http::Server> metrics_;
};

}  // namespace fencepost
