// The HTTP routes of this module: /api/v1/tx…, /api/v1/signers…, /rpc/…
//
// An API key that is restricted to some signers can create only for those (403 `signer_not_allowed`) and cannot see the
// transactions of other signers (404 `no_such_tx`). The routes for operators need the scope `tx:operate` and a reason,
// which is stored.
#pragma once

#include "base/uuid.hpp"
#include "evm/keys/key_ring.hpp"
#include "http/router.hpp"
#include "pg/database.hpp"
#include "tx/tx_manager.hpp"

namespace fencepost::tx {

// Requires: all parts outlive the server, and the requests that still run when it has stopped.
struct RoutesParts {
  TxManager& manager;
  pg::Database& database;
  const evm::KeyRing& keys;
  UuidGenerator& ids;
};

void add_routes(http::Router& router, const RoutesParts& parts);

}  // namespace fencepost::tx
