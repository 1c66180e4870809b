// The handlers behind the routes table, by file, and what they share.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "base/json_reader.hpp"
#include "http/message.hpp"
#include "http/request_reader.hpp"
#include "timelock/routes/routes.hpp"

namespace fencepost::timelock {

// timelock_routes.cpp
awaitable<http::Response> import_timelock(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_timelocks(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_timelock(http::Request& request, RoutesParts parts);
awaitable<http::Response> change_timelock(http::Request& request, RoutesParts parts);
awaitable<http::Response> remove_timelock_route(http::Request& request, RoutesParts parts);

// verify_routes.cpp
awaitable<http::Response> verify_timelocks_route(http::Request& request, RoutesParts parts);

// The contract that the path names. Throws `invalid_parameter`, `bad_address`, `bad_checksum`.
ContractKey contract_of_path(const http::Request& request);
// Throws kForbidden `contract_not_allowed` when the caller is limited to other contracts.
void check_contract(const http::Request& request, const std::string& address);

}  // namespace fencepost::timelock
