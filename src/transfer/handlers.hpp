// The handlers that the table in routes.cpp names, and their common helpers.
#pragma once

#include "transfer/routes.hpp"

namespace fencepost::transfer {

// transfer_routes.cpp
awaitable<http::Response> create_transfer(http::Request& request, RoutesParts parts);
awaitable<http::Response> create_transfer_batch(http::Request& request, RoutesParts parts);
awaitable<http::Response> list_transfers(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_transfer(http::Request& request, RoutesParts parts);
awaitable<http::Response> cancel_transfer(http::Request& request, RoutesParts parts);
awaitable<http::Response> fail_transfer(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_audit(http::Request& request, RoutesParts parts);

// account_routes.cpp
awaitable<http::Response> get_account(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_statement(http::Request& request, RoutesParts parts);
awaitable<http::Response> mint(http::Request& request, RoutesParts parts);
awaitable<http::Response> burn(http::Request& request, RoutesParts parts);
awaitable<http::Response> set_account_kind(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_settings(http::Request& request, RoutesParts parts);
awaitable<http::Response> change_settings(http::Request& request, RoutesParts parts);

// Error kForbidden `guild_not_allowed` if the key may not act in this guild.
Result<void> check_allowed(const http::Principal& principal, std::int64_t guild_id);

}  // namespace fencepost::transfer
