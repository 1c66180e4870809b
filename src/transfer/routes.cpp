#include "transfer/routes.hpp"

#include "http/route_table.hpp"
#include "transfer/handlers.hpp"

namespace fencepost::transfer {
namespace {

using http::Verb;

constexpr http::RouteRow<RoutesParts> kRoutes[] = {
    {Verb::kPost, "/api/v1/transfers", "transfer:write", create_transfer},
    {Verb::kPost, "/api/v1/transfers/batch", "transfer:write", create_transfer_batch},
    {Verb::kGet, "/api/v1/transfers", "transfer:read", list_transfers},
    {Verb::kGet, "/api/v1/transfers/audit", "transfer:operate", get_audit},
    {Verb::kGet, "/api/v1/transfers/{transferId:uuid}", "transfer:read", get_transfer},
    {Verb::kPost, "/api/v1/transfers/{transferId:uuid}/cancel", "transfer:write", cancel_transfer},
    {Verb::kPost, "/api/v1/transfers/{transferId:uuid}/fail", "transfer:operate", fail_transfer},
    {Verb::kGet, "/api/v1/guilds/{guildId:id}/accounts/{memberId:id}", "transfer:read", get_account},
    {Verb::kGet, "/api/v1/guilds/{guildId:id}/accounts/{memberId:id}/statement", "transfer:read", get_statement},
    {Verb::kPost, "/api/v1/guilds/{guildId:id}/accounts/{memberId:id}/mint", "transfer:operate", mint},
    {Verb::kPost, "/api/v1/guilds/{guildId:id}/accounts/{memberId:id}/burn", "transfer:operate", burn},
    {Verb::kPut, "/api/v1/guilds/{guildId:id}/accounts/{memberId:id}/kind", "transfer:operate", set_account_kind},
    {Verb::kGet, "/api/v1/guilds/{guildId:id}/settings", "transfer:read", get_settings},
    {Verb::kPatch, "/api/v1/guilds/{guildId:id}/settings", "transfer:operate", change_settings},
};

}  // namespace

void add_routes(http::Router& router, const RoutesParts& parts) {
  http::add_table<RoutesParts>(router, kRoutes, parts);
}

}  // namespace fencepost::transfer
