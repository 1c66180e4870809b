#include "node/routes.hpp"

namespace fencepost {

void add_all_routes(http::Router& router, const RoutesParts& parts) {
  add_system_routes(router, parts.system);
  add_cluster_routes(router, parts.cluster);
  identity::add_login_routes(router, parts.login);
  outbox::add_stream_routes(router, parts.events);
  outbox::add_webhook_routes(router, parts.webhooks);
  tx::add_routes(router, parts.tx);
  timelock::add_routes(router, parts.timelock);
  notify::add_routes(router, parts.mail);
  transfer::add_routes(router, parts.transfer);
}

}  // namespace fencepost
