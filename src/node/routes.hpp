// Adds all HTTP routes of a node. The node and the test of the OpenAPI document use it.
#pragma once

#include "http/router.hpp"
#include "identity/login_routes.hpp"
#include "node/cluster_routes.hpp"
#include "node/system_routes.hpp"
#include "notify/routes/routes.hpp"
#include "outbox/stream/event_stream_routes.hpp"
#include "outbox/webhook/routes.hpp"
#include "timelock/routes/routes.hpp"
#include "transfer/routes.hpp"
#include "tx/routes/routes.hpp"

namespace fencepost {

struct RoutesParts {
  SystemParts system;
  ClusterRoutesParts cluster;
  identity::LoginRoutesParts login;
  outbox::StreamParts events;
  outbox::WebhookRoutesParts webhooks;
  tx::RoutesParts tx;
  timelock::RoutesParts timelock;
  notify::RoutesParts mail;
  transfer::RoutesParts transfer;
};

void add_all_routes(http::Router& router, const RoutesParts& parts);

}  // namespace fencepost
