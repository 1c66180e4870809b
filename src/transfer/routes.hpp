// Everything that this domain serves over HTTP: /api/v1/transfers… and /api/v1/guilds/{guildId}/…
//
// A key that is restricted to some guilds acts only there (403 `guild_not_allowed`), and others' transfers do not exist
// for it (404 `no_such_transfer`). What changes accounts or settings by hand has the scope `transfer:operate` and needs
// a reason, which is kept.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "base/uuid.hpp"
#include "http/router.hpp"
#include "pg/database.hpp"
#include "transfer/transfer_service.hpp"

namespace fencepost::transfer {

// The kind of http::Principal's restrictions that this domain asks for: guild ids as decimal digits.
inline constexpr std::string_view kGuildKind = "guild";

// All of them outlive the server, and the requests that its stop has left behind.
struct RoutesParts {
  TransferService& service;
  pg::Database& database;
  UuidGenerator& ids;
  std::shared_ptr<std::atomic<bool>> auditing = std::make_shared<std::atomic<bool>>(false);  // one at a time
};

void add_routes(http::Router& router, const RoutesParts& parts);

}  // namespace fencepost::transfer
