// Routes about this node's chains and the nodes that share its database: /api/v1/chains, /api/v1/nodes.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "evm/chain.hpp"
#include "http/router.hpp"
#include "pg/database.hpp"

namespace fencepost {

struct ClusterRoutesParts {
  pg::Database& database;
  const std::vector<std::unique_ptr<evm::Chain>>& chains;
  std::chrono::milliseconds heartbeat_interval;
};

void add_cluster_routes(http::Router& router, const ClusterRoutesParts& parts);

}  // namespace fencepost
