// Everything that this domain serves over HTTP: /api/v1/tx…, /api/v1/signers…
//
// A key that is restricted to some signers creates only for those (403 `signer_not_allowed`), and others' transactions
// do not exist for it (404 `no_such_tx`). What an operator does by hand has the scope `tx:operate` and needs a reason,
// which is kept.
#pragma once

#include "base/uuid.hpp"
#include "evm/key_ring.hpp"
#include "http/router.hpp"
#include "pg/database.hpp"
#include "tx/tx_manager.hpp"

namespace fencepost::tx {

// All of them outlive the server, and the requests that its stop has left behind.
struct RoutesParts {
  TxManager& manager;
  pg::Database& database;
  const evm::KeyRing& keys;
  UuidGenerator& ids;
};

void add_routes(http::Router& router, const RoutesParts& parts);

}  // namespace fencepost::tx
