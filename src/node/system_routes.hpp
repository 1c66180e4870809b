// The routes about the node itself: health, metrics, version, the API's description.
#pragma once

#include <atomic>
#include <string_view>

#include "http/router.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"

namespace fencepost {

struct SystemParts {
  pg::Database& database;
  Metrics& metrics;
  const std::atomic<bool>& serving;  // true from the end of the start to the beginning of the stop
};

void add_system_routes(http::Router& router, const SystemParts& parts);

// The OpenAPI 3.1 document, as served.
std::string_view openapi_document();
std::string_view version();

}  // namespace fencepost
