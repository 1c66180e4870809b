// Who sends, where to, and from which nodes: /api/v1/signers, /api/v1/chains, /api/v1/nodes.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "evm/key_ring.hpp"
#include "http/router.hpp"
#include "pg/database.hpp"
#include "tx/store/lease_store.hpp"
#include "tx/tx_manager.hpp"

namespace fencepost::tx {

struct SignerRoutesParts {
  pg::Database& database;
  const evm::KeyRing& keys;
  TxManager& manager;
};

void add_signer_routes(http::Router& router, const SignerRoutesParts& parts);

// Which of the nodes missed at most three heartbeats in a row, in the same order. Reckoned from the newest heartbeat of
// all, so that only the database's clock counts: the node that asks is alive itself.
std::vector<bool> alive_nodes(const std::vector<ClusterNode>& nodes, std::chrono::milliseconds heartbeat_interval);

// "20", "safe" or "finalized": as `confirmations.required` is written.
std::string to_string(const Finality& finality);

}  // namespace fencepost::tx
