// The handlers behind the routes table, by file, and what they share.
#pragma once

#include <cstdint>
#include <optional>
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

// contract_routes.cpp
awaitable<http::Response> get_timelock_stats(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_timelock_events(http::Request& request, RoutesParts parts);

// flow_routes.cpp
awaitable<http::Response> get_flows(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_flow(http::Request& request, RoutesParts parts);

// calendar_routes.cpp
awaitable<http::Response> get_calendar(http::Request& request, RoutesParts parts);

// abi_routes.cpp
awaitable<http::Response> add_abi(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_abis(http::Request& request, RoutesParts parts);
awaitable<http::Response> remove_abi_route(http::Request& request, RoutesParts parts);

// The contract that the path names. Throws `invalid_parameter`, `bad_address`, `bad_checksum`.
ContractKey contract_of_path(const http::Request& request);
// ?chainId=. Throws `invalid_parameter`.
std::optional<std::int64_t> chain_of_query(const http::Request& request);
// Throws kForbidden `contract_not_allowed` when the caller is limited to other contracts.
void check_contract(const http::Request& request, const std::string& address);
// Throws kForbidden `api_key_required` when the caller is a wallet: anyone can have one, so it sees nothing of
// operators.
void check_operator(const http::Request& request);

}  // namespace fencepost::timelock
