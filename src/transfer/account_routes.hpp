// Accounts and a guild's settings, over HTTP: /api/v1/guilds/{guildId}/… What changes them by hand has the scope
// `transfer:operate` and needs a reason, which is kept. A key that is restricted to other guilds is told 403
// `guild_not_allowed`.
#pragma once

#include "http/router.hpp"
#include "transfer/transfer_service.hpp"

namespace fencepost::transfer {

// It outlives the server, and the requests that its stop has left behind.
struct AccountRoutesParts {
  TransferService& service;
};

void add_account_routes(http::Router& router, const AccountRoutesParts& parts);

}  // namespace fencepost::transfer
