// Making transfers and looking at them, over HTTP: /api/v1/transfers…
//
// A key that is restricted to some guilds makes transfers only there (403 `guild_not_allowed`), and others' transfers
// do not exist for it (404 `no_such_transfer`).
#pragma once

#include <atomic>
#include <memory>

#include "base/uuid.hpp"
#include "http/router.hpp"
#include "pg/database.hpp"
#include "transfer/transfer_service.hpp"

namespace fencepost::transfer {

// The kind of http::Principal's restrictions that this domain asks for: guild ids as decimal digits.
inline constexpr std::string_view kGuildKind = "guild";

// All of them outlive the server, and the requests that its stop has left behind.
struct TransferRoutesParts {
  TransferService& service;
  pg::Database& database;
  UuidGenerator& ids;
  std::shared_ptr<std::atomic<bool>> auditing = std::make_shared<std::atomic<bool>>(false);  // one at a time
};

void add_transfer_routes(http::Router& router, const TransferRoutesParts& parts);

// kForbidden `guild_not_allowed` when the key may not act there.
Result<void> check_allowed(const http::Principal& principal, std::int64_t guild_id);

}  // namespace fencepost::transfer
