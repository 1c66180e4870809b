// The routes of mail: a person's own addresses and subscriptions, the link that unsubscribes, and what operators see.
#pragma once

#include "http/router.hpp"
#include "notify/notify_manager.hpp"

namespace fencepost::notify {

struct RoutesParts {
  NotifyManager& mail;
};

void add_routes(http::Router& router, const RoutesParts& parts);

}  // namespace fencepost::notify
