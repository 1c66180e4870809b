// The handlers that the table in routes.cpp names, and the functions that they share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tx/routes/routes.hpp"
#include "tx/routes/tx_request.hpp"
#include "tx/service/signer_access.hpp"

namespace fencepost::tx {

// tx_create_routes.cpp
awaitable<http::Response> create_tx(http::Request& request, RoutesParts parts);
awaitable<http::Response> create_tx_batch(http::Request& request, RoutesParts parts);

// tx_routes.cpp
awaitable<http::Response> list_tx(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_tx(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_tx_by_request(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_tx_history(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_tx_events(http::Request& request, RoutesParts parts);

// operator_routes.cpp
awaitable<http::Response> rebroadcast_tx(http::Request& request, RoutesParts parts);
awaitable<http::Response> record_tx_hash(http::Request& request, RoutesParts parts);
awaitable<http::Response> cancel_tx(http::Request& request, RoutesParts parts);
awaitable<http::Response> resend_tx(http::Request& request, RoutesParts parts);
awaitable<http::Response> give_up_tx(http::Request& request, RoutesParts parts);
awaitable<http::Response> fill_nonce(http::Request& request, RoutesParts parts);
awaitable<http::Response> accept_reconcile(http::Request& request, RoutesParts parts);
awaitable<http::Response> reset_cursor(http::Request& request, RoutesParts parts);

// signer_routes.cpp
awaitable<http::Response> get_signers(http::Request& request, RoutesParts parts);

// Waits until `tx` has reached the state that `wait` asks for, or until its timeout, and returns the transaction as it
// is then. Returns `tx` at once when `wait` is nullopt.
awaitable<ManagedTx> wait_for(TxService& service, ManagedTx tx, std::optional<WaitQuery> wait);

// The transaction, if the caller may see it. Error: `no_such_tx`.
awaitable<Result<ManagedTx>> find_visible(TxService& service, http::Principal principal, Uuid tx_id);

}  // namespace fencepost::tx
