// Creating transactions and looking at them, over HTTP: /api/v1/tx…
//
// A key that is restricted to some signers creates only for those (403 `signer_not_allowed`), and others'
// transactions do not exist for it (404 `no_such_tx`).
#pragma once

#include "base/uuid.hpp"
#include "http/router.hpp"
#include "pg/database.hpp"
#include "tx/routes/tx_request.hpp"
#include "tx/service/tx_service.hpp"

namespace fencepost::tx {

// The kind of http::Principal's restrictions that this domain asks for: lowercase addresses.
inline constexpr std::string_view kSignerKind = "signer";

// All of them outlive the server, and the requests that its stop has left behind.
struct TxRoutesParts {
  TxService& service;
  pg::Database& database;
  UuidGenerator& ids;
};

void add_tx_routes(http::Router& router, const TxRoutesParts& parts);

// What routes have in common.

// The transaction as it is when it has come as far as asked, or the patience is over; at once without a question.
awaitable<ManagedTx> wait_for(TxService& service, ManagedTx tx, std::optional<WaitQuery> wait);

// The transaction, if the caller may see it. Error: `no_such_tx`.
awaitable<Result<ManagedTx>> find_visible(TxService& service, http::Principal principal, Uuid tx_id);

// The signers that the caller may use; none: every signer.
std::optional<std::vector<std::string>> allowed_signers(const http::Principal& principal);
bool may_use_signer(const http::Principal& principal, std::string_view signer);
// kForbidden `signer_not_allowed` when the key may not use it.
Result<void> check_allowed(const http::Principal& principal, const std::string& signer);

}  // namespace fencepost::tx
