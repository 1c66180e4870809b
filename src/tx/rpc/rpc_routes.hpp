// POST /rpc/{chainId} and POST /rpc/{chainId}/{key}: JSON-RPC 2.0 for Ethereum clients.
//
// Answers are HTTP 200, errors included. Only what concerns the whole request has another status, with the same body:
// 401 and 429 of the API key, 400 of a chain that is not configured or of a bad Idempotency-Key.
#pragma once

#include "http/router.hpp"
#include "tx/rpc/rpc_service.hpp"

namespace fencepost::tx {

// Requires: as RoutesParts.
void add_rpc_routes(http::Router& router, RpcService& service);

}  // namespace fencepost::tx
