// POST /api/v1/tx and /api/v1/tx/batch.
#pragma once

#include "tx/tx_routes.hpp"

namespace fencepost::tx {

void add_create_routes(http::Router& router, const TxRoutesParts& parts);

// How one refused item of a batch is told: what a problem document would say of it, without the parts that belong to
// an answer of its own, and `retryAfter` in seconds instead of the header.
boost::json::object item_error(const Error& error);

}  // namespace fencepost::tx
