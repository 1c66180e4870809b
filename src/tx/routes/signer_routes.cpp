#include "tx/routes/signer_routes.hpp"

#include <algorithm>
#include <set>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "tx/routes/tx_request.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;
using http::Access;
using http::Request;
using http::Response;
using http::Verb;
using Parts = SignerRoutesParts;

constexpr int kMissedHeartbeats = 3;

template <class T>
json::value optional_json(const std::optional<T>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::value time_json(const std::optional<TimePoint>& at) {
  return at ? json::value(to_rfc3339(*at)) : json::value(nullptr);
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object to_json(const SignerView& signer, bool has_key) {
  return {{"chainId", signer.key.chain_id},
          {"signer", signer.key.signer},
          {"hasKey", has_key},
          {"leader", text_or_null(signer.leader)},
          {"fencingToken", signer.fencing_token},
          {"nextNonce", optional_json(signer.next_nonce)},
          {"chainNonce", optional_json(signer.chain_nonce)},
          {"needsReconcile", signer.needs_reconcile},
          {"counts", signer.counts},
          {"oldestOpen", time_json(signer.oldest_open)}};
}

json::object to_json(const evm::EndpointStatus& endpoint) {
  return {{"label", endpoint.label},
          {"healthy", !endpoint.wrong_chain && !endpoint.cooling_until},
          {"wrongChain", endpoint.wrong_chain},
          {"consecutiveFailures", endpoint.consecutive_failures},
          {"coolingUntil", time_json(endpoint.cooling_until)},
          {"latencyMs", static_cast<double>(endpoint.latency.count()) / 1000}};
}

json::object to_json(const ChainStatus& chain) {
  json::value head(nullptr);
  if (chain.head) {
    head = {{"number", chain.head->number},
            {"hash", chain.head->hash},
            {"time", to_rfc3339(TimePoint(std::chrono::seconds(chain.head->timestamp)))}};
  }
  json::array endpoints;
  for (const auto& endpoint : chain.endpoints) endpoints.push_back(to_json(endpoint));
  return {{"chainId", chain.chain_id},
          {"name", chain.name},
          {"head", std::move(head)},
          {"synced", chain.synced},
          {"confirmationsRequired", to_string(chain.required)},
          {"endpoints", std::move(endpoints)}};
}

json::object to_json(const ClusterNode& node, bool alive) {
  return {{"nodeId", node.node_id},
          {"advertiseUrl", text_or_null(node.advertise_url)},
          {"version", node.version},
          {"alive", alive},
          {"leases", node.leases},
          {"startedAt", to_rfc3339(node.started_at)},
          {"heartbeatAt", to_rfc3339(node.heartbeat_at)}};
}

Response items(json::array list) {
  return Response::json(200, json::object{{"items", std::move(list)}});
}

// Those that were ever used come from the database; the rest are keys of this node that wait for their first use.
void add_unused(std::vector<SignerView>& signers, const std::vector<ChainStatus>& chains, const evm::KeyRing& keys,
                const http::Principal& principal) {
  std::set<SignerKey> used;
  for (const auto& signer : signers) used.insert(signer.key);
  for (const auto& chain : chains) {
    for (auto& address : keys.addresses()) {
      SignerView unused;
      unused.key = {chain.chain_id, std::move(address)};
      unused.counts = json::object();
      if (!used.contains(unused.key) && principal.allows_signer(unused.key.signer)) signers.push_back(unused);
    }
  }
  std::ranges::sort(signers, {}, &SignerView::key);
}

awaitable<Response> get_signers(Request& request, Parts parts) {
  check_query(request, {});
  auto signers = co_await list_signers(parts.database.pool(), request.principal()->signers);
  const auto chains = co_await parts.manager.chains();
  add_unused(signers, chains, parts.keys, *request.principal());
  json::array list;
  for (const auto& signer : signers) list.push_back(to_json(signer, parts.keys.find(signer.key.signer) != nullptr));
  co_return items(std::move(list));
}

awaitable<Response> get_chains(Request& request, Parts parts) {
  check_query(request, {});
  const auto chains = co_await parts.manager.chains();
  json::array list;
  for (const auto& chain : chains) list.push_back(to_json(chain));
  co_return items(std::move(list));
}

awaitable<Response> get_nodes(Request& request, Parts parts) {
  check_query(request, {});
  const auto nodes = co_await list_nodes(parts.database.pool());
  const auto alive = alive_nodes(nodes, parts.manager.leases().options().renew_interval);
  json::array list;
  for (std::size_t i = 0; i < nodes.size(); ++i) list.push_back(to_json(nodes[i], alive[i]));
  co_return items(std::move(list));
}

}  // namespace

std::vector<bool> alive_nodes(const std::vector<ClusterNode>& nodes, std::chrono::milliseconds heartbeat_interval) {
  if (nodes.empty()) return {};
  const auto newest = std::ranges::max(nodes, {}, &ClusterNode::heartbeat_at).heartbeat_at;
  std::vector<bool> alive;
  for (const auto& node : nodes) alive.push_back(newest - node.heartbeat_at <= kMissedHeartbeats * heartbeat_interval);
  return alive;
}

std::string to_string(const Finality& finality) {
  switch (finality.kind) {
    case Finality::Kind::kSafe:
      return "safe";
    case Finality::Kind::kFinalized:
      return "finalized";
    case Finality::Kind::kDepth:
      break;
  }
  return std::to_string(finality.depth);
}

void add_signer_routes(http::Router& router, const SignerRoutesParts& parts) {
  const auto read = Access::scope("tx:read");
  router.add({Verb::kGet, "/api/v1/signers", read, [parts](Request& r) { return get_signers(r, parts); }});
  router.add({Verb::kGet, "/api/v1/chains", read, [parts](Request& r) { return get_chains(r, parts); }});
  router.add({Verb::kGet, "/api/v1/nodes", read, [parts](Request& r) { return get_nodes(r, parts); }});
}

}  // namespace fencepost::tx
