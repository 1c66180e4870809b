// The HTTP routes of webhooks: /api/v1/webhooks…
#pragma once

#include "http/router.hpp"
#include "outbox/webhook/webhook_service.hpp"

namespace fencepost::outbox {

// Requires: the service outlives the server and the requests still in flight after its stop.
struct WebhookRoutesParts {
  WebhookService& service;
};

void add_webhook_routes(http::Router& router, const WebhookRoutesParts& parts);

}  // namespace fencepost::outbox
