// The HTTP routes of this domain: /api/v1/transfers… and /api/v1/guilds/{guildId}/…
//
// A key that is restricted to some guilds may act only in these (otherwise 403 `guild_not_allowed`) and does not see
// transfers of other guilds (404 `no_such_transfer`). Routes that change accounts or settings need the scope
// `transfer:operate` and a reason, which is stored.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "base/uuid.hpp"
#include "http/router.hpp"
#include "pg/database.hpp"
#include "transfer/transfer_service.hpp"

namespace fencepost::transfer {

// The kind of http::Principal's restrictions that this domain uses: guild ids as decimal digits.
inline constexpr std::string_view kGuildKind = "guild";

// Requires: all references outlive the server and the requests still in flight after its stop.
struct RoutesParts {
  TransferService& service;
  pg::Database& database;
  UuidGenerator& ids;
  std::shared_ptr<std::atomic<bool>> auditing = std::make_shared<std::atomic<bool>>(false);  // one at a time
};

void add_routes(http::Router& router, const RoutesParts& parts);

}  // namespace fencepost::transfer
