#include "node/cluster_routes.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "http/list_answer.hpp"
#include "http/request_reader.hpp"
#include "http/route_table.hpp"

#include "cluster/node_registry.hpp"

namespace fencepost {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;
using http::Verb;

json::value time_json(const std::optional<TimePoint>& at) {
  return at ? json::value(to_rfc3339(*at)) : json::value(nullptr);
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

// A relay is asked only when there is something to broadcast, so it may be silent.
bool is_healthy(const evm::EndpointStatus& endpoint, std::optional<TimePoint> answers_since) {
  const bool answers = endpoint.consecutive_failures == 0 &&
                       (!answers_since || (endpoint.answered_at && *endpoint.answered_at >= *answers_since));
  return answers && !endpoint.wrong_chain && !endpoint.cooling_until && !endpoint.behind;
}

json::object to_json(const evm::EndpointStatus& endpoint, std::optional<TimePoint> answers_since) {
  return {{"label", endpoint.label},
          {"healthy", is_healthy(endpoint, answers_since)},
          {"wrongChain", endpoint.wrong_chain},
          {"head", endpoint.head ? json::value(*endpoint.head) : json::value(nullptr)},
          {"behind", endpoint.behind},
          {"consecutiveFailures", endpoint.consecutive_failures},
          {"coolingUntil", time_json(endpoint.cooling_until)},
          {"latencyMs", static_cast<double>(endpoint.latency.count()) / 1000}};
}

json::object to_json(const evm::ChainStatus& chain) {
  json::value head(nullptr);
  if (chain.head) {
    head = {{"number", chain.head->number},
            {"hash", chain.head->hash},
            {"time", to_rfc3339(TimePoint(std::chrono::seconds(chain.head->timestamp)))}};
  }
  json::array endpoints;
  for (const auto& endpoint : chain.endpoints) endpoints.push_back(to_json(endpoint, chain.answers_since));
  json::array submit_endpoints;
  for (const auto& endpoint : chain.submit_endpoints) submit_endpoints.push_back(to_json(endpoint, std::nullopt));
  return {{"chainId", chain.chain_id},
          {"name", chain.name},
          {"head", std::move(head)},
          {"synced", chain.synced},
          {"confirmationsRequired", to_string(chain.finality)},
          {"endpoints", std::move(endpoints)},
          {"submitEndpoints", std::move(submit_endpoints)}};
}

json::object to_json(const cluster::ClusterNode& node, bool alive) {
  return {{"nodeId", node.node_id},
          {"advertiseUrl", text_or_null(node.advertise_url)},
          {"version", node.version},
          {"alive", alive},
          {"leases", node.leases},
          {"startedAt", to_rfc3339(node.started_at)},
          {"heartbeatAt", to_rfc3339(node.heartbeat_at)}};
}

awaitable<Response> get_chains(Request& request, ClusterRoutesParts parts) {
  check_query(request, {});
  json::array items;
  for (const auto& chain : parts.chains) {
    const auto status = co_await chain->status();
    items.push_back(to_json(status));
  }
  co_return http::list_answer(std::move(items));
}

awaitable<Response> get_nodes(Request& request, ClusterRoutesParts parts) {
  check_query(request, {});
  const auto nodes = co_await cluster::list_nodes(parts.database.pool());
  const auto alive = cluster::alive_nodes(nodes, parts.heartbeat_interval);
  json::array items;
  for (std::size_t i = 0; i < nodes.size(); ++i) items.push_back(to_json(nodes[i], alive[i]));
  co_return http::list_answer(std::move(items));
}

constexpr http::RouteRow<ClusterRoutesParts> kClusterRoutes[] = {
    {Verb::kGet, "/api/v1/chains", "tx:read", get_chains},
    {Verb::kGet, "/api/v1/nodes", "tx:read", get_nodes},
};

}  // namespace

void add_cluster_routes(http::Router& router, const ClusterRoutesParts& parts) {
  http::add_table<ClusterRoutesParts>(router, kClusterRoutes, parts);
}

}  // namespace fencepost
