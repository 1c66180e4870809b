#include "cluster/node_registry.hpp"

#include <algorithm>

#include "cluster/node_table.hpp"

namespace fencepost::cluster {
namespace {

using pg::Statement;

constexpr int kMissedHeartbeats = 3;
constexpr std::chrono::seconds kLockPatience{2};  // then the next heartbeat tries again

constexpr Statement kHeartbeat{"cluster_node_heartbeat", R"(
  INSERT INTO cluster_node (node_id, advertise_url, version)
  VALUES ($1, $2, $3)
      ON CONFLICT (node_id) DO UPDATE SET heartbeat_at = clock_timestamp(), advertise_url = $2
  RETURNING says_abilities)"};

constexpr Statement kListSigners{"cluster_node_list_signers", R"(
  INSERT INTO cluster_node_signer (node_id, signer)
  SELECT $1, s
    FROM unnest($2::text[]) AS s
      ON CONFLICT DO NOTHING)"};

constexpr Statement kListChains{"cluster_node_list_chains", R"(
  INSERT INTO cluster_node_chain (node_id, chain_id)
  SELECT $1, c
    FROM unnest($2::bigint[]) AS c
      ON CONFLICT DO NOTHING)"};

constexpr Statement kSaysAbilities{"cluster_node_says_abilities",
                                   "UPDATE cluster_node SET says_abilities = true WHERE node_id = $1"};

// Dead nodes stay listed for an hour, so that an operator sees them. A node that owns a lease stays longer: a takeover
// recognises the owner's sessions by this row.
constexpr Statement kForgetDead{"cluster_node_forget_dead", R"(
  DELETE FROM cluster_node
   WHERE heartbeat_at < clock_timestamp() - interval '1 hour'
     AND node_id NOT IN (SELECT owner_node FROM signer_lease))"};

}  // namespace

// On a connection of its own, so that no other statement waits behind a lock on the table.
awaitable<> heartbeat(pg::Pool& pool, NodeIdentity node, std::shared_ptr<const NodeAbilities> abilities) {
  pg::Batch batch;
  batch.add(kHeartbeat, node.node_id, node.advertise_url, node.version).add(kForgetDead).lock_timeout(kLockPatience);
  const auto connection = co_await pool.acquire();
  const auto results = co_await connection->run(batch);
  if (abilities == nullptr || results.front().one().get<bool>("says_abilities")) co_return;
  pg::Batch lists;
  lists.add(kListSigners, node.node_id, abilities->signers).add(kListChains, node.node_id, abilities->chains);
  lists.add(kSaysAbilities, node.node_id).lock_timeout(kLockPatience);
  co_await connection->run(lists);
}

namespace {

constexpr Statement kForgetNode{"cluster_node_forget", "DELETE FROM cluster_node WHERE node_id = $1"};

}  // namespace

awaitable<> forget_node(pg::Pool& pool, std::string node_id, std::optional<std::chrono::milliseconds> timeout) {
  pg::Batch batch;
  batch.add(kForgetNode, node_id);
  co_await pool.run(std::move(batch), {.timeout = timeout});
}

namespace {

constexpr Statement kNodes{"cluster_node_list", R"(
  SELECT n.node_id, n.advertise_url, n.version, n.started_at, n.heartbeat_at,
         (SELECT count(*) FROM signer_lease AS l
           WHERE l.owner_node = n.node_id AND l.expires_at > clock_timestamp()) AS leases
    FROM cluster_node AS n
   ORDER BY n.started_at, n.node_id)"};

}  // namespace

awaitable<std::vector<ClusterNode>> list_nodes(pg::Pool& pool) {
  const auto rows = co_await read_nodes(pool, kNodes);
  std::vector<ClusterNode> nodes;
  nodes.reserve(rows.size());
  for (const auto row : rows) {
    nodes.push_back({.node_id = row.get<std::string>("node_id"),
                     .advertise_url = row.get<std::string>("advertise_url"),
                     .version = row.get<std::string>("version"),
                     .started_at = row.get<TimePoint>("started_at"),
                     .heartbeat_at = row.get<TimePoint>("heartbeat_at"),
                     .leases = row.get<std::int64_t>("leases")});
  }
  co_return nodes;
}

std::chrono::milliseconds longest_silence(std::chrono::milliseconds heartbeat_interval) {
  return kMissedHeartbeats * heartbeat_interval;
}

std::vector<bool> alive_nodes(const std::vector<ClusterNode>& nodes, std::chrono::milliseconds heartbeat_interval) {
  if (nodes.empty()) return {};
  const auto newest = std::ranges::max(nodes, {}, &ClusterNode::heartbeat_at).heartbeat_at;
  std::vector<bool> alive;
  alive.reserve(nodes.size());
  for (const auto& node : nodes) alive.push_back(newest - node.heartbeat_at <= longest_silence(heartbeat_interval));
  return alive;
}

}  // namespace fencepost::cluster
