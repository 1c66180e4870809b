// POST /api/v1/tx and /api/v1/tx/batch.
#pragma once

#include "tx/routes/tx_routes.hpp"

namespace fencepost::tx {

void add_create_routes(http::Router& router, const TxRoutesParts& parts);

}  // namespace fencepost::tx
