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
};

}  // namespace

void add_routes(http::Router& router, const RoutesParts& parts) {
  http::add_table<RoutesParts>(router, kRoutes, parts);
}

}  // namespace fencepost::timelock
