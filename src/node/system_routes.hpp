// The routes about the node itself: health, metrics, version, the API's description.
#pragma once

#include <atomic>
#include <string_view>

#include "http/router.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"

namespace fencepost {

// Where a router serves /metrics.
enum class MetricsRoute { kOpen, kForKeys, kNone };

struct SystemParts {
  pg::Database& database;
  Metrics& metrics;
  const std::atomic<bool>& serving;  // true from the end of the start to the beginning of the stop
  MetricsRoute metrics_route = MetricsRoute::kOpen;
};

void add_system_routes(http::Router& router, const SystemParts& parts);

// /metrics alone, for a server of its own.
void add_metrics_route(http::Router& router, Metrics& metrics, MetricsRoute route);

// The OpenAPI 3.1 document, as served.
std::string_view openapi_document();
std::string_view version();

}  // namespace fencepost
