// What an operator may do by hand, over HTTP. Scope `tx:operate`; each needs a reason, which is kept.
#pragma once

#include "http/router.hpp"
#include "tx/service/operator_service.hpp"
#include "tx/service/tx_service.hpp"

namespace fencepost::tx {

struct OperatorRoutesParts {
  TxService& service;
  OperatorService& operators;
};

void add_operator_routes(http::Router& router, const OperatorRoutesParts& parts);

}  // namespace fencepost::tx
