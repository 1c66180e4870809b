// Which signers there are, and what each of them is doing: /api/v1/signers.
#pragma once

#include <cstdint>
#include <vector>

#include "evm/key_ring.hpp"
#include "http/router.hpp"
#include "pg/database.hpp"

namespace fencepost::tx {

struct SignerRoutesParts {
  pg::Database& database;
  const evm::KeyRing& keys;
  std::vector<std::int64_t> chain_ids;
};

void add_signer_routes(http::Router& router, const SignerRoutesParts& parts);

}  // namespace fencepost::tx
