// The HTTP routes of the timelock domain: /api/v1/timelocks…, /api/v1/flows…, /api/v1/abis….
#pragma once

#include <atomic>
#include <memory>

#include "base/clock.hpp"
#include "base/uuid.hpp"
#include "http/router.hpp"
#include "timelock/service/timelock_service.hpp"

namespace fencepost::timelock {

// Requires: the objects outlive the server and the requests still in flight after its stop.
struct RoutesParts {
  TimelockService& service;
  UuidGenerator& ids;
  const Clock& clock;
  std::shared_ptr<std::atomic<bool>> verifying = std::make_shared<std::atomic<bool>>(false);  // one at a time
};

void add_routes(http::Router& router, const RoutesParts& parts);

}  // namespace fencepost::timelock
