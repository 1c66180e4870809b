#include "tx/routes/routes.hpp"

#include "http/route_table.hpp"
#include "tx/routes/handlers.hpp"
#include "tx/rpc/rpc_routes.hpp"

namespace fencepost::tx {
namespace {

using http::Verb;

constexpr http::RouteRow<RoutesParts> kRoutes[] = {
    {Verb::kPost, "/api/v1/tx", "tx:write", create_tx},
    {Verb::kPost, "/api/v1/tx/batch", "tx:write", create_tx_batch},
    {Verb::kGet, "/api/v1/tx", "tx:read", list_tx},
    {Verb::kGet, "/api/v1/tx/by-request", "tx:read", get_tx_by_request},
    {Verb::kGet, "/api/v1/tx/{txId:uuid}", "tx:read", get_tx},
    {Verb::kGet, "/api/v1/tx/{txId:uuid}/history", "tx:read", get_tx_history},
    {Verb::kGet, "/api/v1/tx/{txId:uuid}/events", "tx:read", get_tx_events},
    {Verb::kPost, "/api/v1/tx/{txId:uuid}/rebroadcast", "tx:operate", rebroadcast_tx},
    {Verb::kPost, "/api/v1/tx/{txId:uuid}/record-hash", "tx:operate", record_tx_hash},
    {Verb::kPost, "/api/v1/tx/{txId:uuid}/cancel", "tx:operate", cancel_tx},
    {Verb::kPost, "/api/v1/tx/{txId:uuid}/resend", "tx:operate", resend_tx},
    {Verb::kPost, "/api/v1/tx/{txId:uuid}/give-up", "tx:operate", give_up_tx},
    {Verb::kGet, "/api/v1/signers", "tx:read", get_signers},
    {Verb::kPost, "/api/v1/signers/{signer}/fill-nonce", "tx:operate", fill_nonce},
    {Verb::kPost, "/api/v1/signers/{signer}/accept-reconcile", "tx:operate", accept_reconcile},
    {Verb::kPost, "/api/v1/signers/{signer}/reset-cursor", "tx:operate", reset_cursor},
};

}  // namespace

void add_routes(http::Router& router, const RoutesParts& parts) {
  http::add_table<RoutesParts>(router, kRoutes, parts);
  add_rpc_routes(router, parts.manager.rpc());
}

}  // namespace fencepost::tx
