#include "timelock/routes/routes.hpp"

#include "http/route_table.hpp"
#include "timelock/routes/handlers.hpp"

namespace fencepost::timelock {
namespace {

using http::Verb;

constexpr http::RouteRow<RoutesParts> kRoutes[] = {
    {Verb::kPost, "/api/v1/timelocks", "timelock:write", import_timelock},
    {Verb::kGet, "/api/v1/timelocks", "timelock:read", get_timelocks},
    {Verb::kPost, "/api/v1/timelocks/verify", "timelock:read", verify_timelocks_route},
    {Verb::kGet, "/api/v1/timelocks/{chainId:id}/{address}", "timelock:read", get_timelock},
    {Verb::kPatch, "/api/v1/timelocks/{chainId:id}/{address}", "timelock:write", change_timelock},
    {Verb::kDelete, "/api/v1/timelocks/{chainId:id}/{address}", "timelock:write", remove_timelock_route},
    {Verb::kGet, "/api/v1/timelocks/{chainId:id}/{address}/stats", "timelock:read", get_timelock_stats},
    {Verb::kGet, "/api/v1/timelocks/{chainId:id}/{address}/events", "timelock:read", get_timelock_events},
    {Verb::kGet, "/api/v1/flows", "timelock:read", get_flows},
    {Verb::kGet, "/api/v1/flows/{standard}/{chainId:id}/{contract}/{flowId}", "timelock:read", get_flow},
    {Verb::kGet, "/api/v1/flows.ics", "timelock:read", get_calendar},
    // Most calendar programs send no headers: the key is in the path, which logs mask.
    {Verb::kGet, "/calendar/{key:secret}/flows.ics", "timelock:read", get_calendar},
    {Verb::kPost, "/api/v1/abis", "timelock:write", add_abi},
    {Verb::kGet, "/api/v1/abis", "timelock:read", get_abis},
    {Verb::kDelete, "/api/v1/abis/{abiId:uuid}", "timelock:write", remove_abi_route},
};

}  // namespace

void add_routes(http::Router& router, const RoutesParts& parts) {
  http::add_table<RoutesParts>(router, kRoutes, parts);
}

}  // namespace fencepost::timelock
