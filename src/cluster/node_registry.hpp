// Which nodes share this database: the table cluster_node, one row for each process.
//
// Functions throw as pg::Pool does. Each is safe to repeat.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "pg/pool.hpp"
#include "runtime/async.hpp"

namespace fencepost::cluster {

// One process. The id is new at each start, so that two processes never share a lease.
struct NodeIdentity {
  std::string node_id;        // name and boot id, also the sessions' application_name
  std::string advertise_url;  // empty: other nodes cannot forward to this one
  std::string version;
};

// What a node can do, besides taking requests.
struct NodeAbilities {
  std::vector<std::string> signers;  // whose keys the node has: addresses, lowercase
  std::vector<std::int64_t> chains;  // that the node has configured
};

struct ClusterNode {
  std::string node_id;
  std::string advertise_url;
  std::string version;
  TimePoint started_at;
  TimePoint heartbeat_at;
  std::int64_t leases = 0;  // signer leases of this node that have not expired
};

// Adds the node's row, or renews its heartbeat. Removes nodes that sent no heartbeat for an hour and own no lease. Uses
// an exclusive connection of the pool, and fails when another session holds a lock on the table for two seconds. A new
// row gets the abilities, too; they do not change while a process runs. Null: the node does not say what it can do.
awaitable<> heartbeat(pg::Pool& pool, NodeIdentity node, std::shared_ptr<const NodeAbilities> abilities = nullptr);

// Removes the row of a node that is stopping.
awaitable<> forget_node(pg::Pool& pool, std::string node_id,
                        std::optional<std::chrono::milliseconds> timeout = std::nullopt);

// All nodes, in the order in which they started; empty when there are none.
awaitable<std::vector<ClusterNode>> list_nodes(pg::Pool& pool);

// The age of a heartbeat, compared with the newest of all nodes, up to which a node counts as alive.
std::chrono::milliseconds longest_silence(std::chrono::milliseconds heartbeat_interval);

// For each node, in the same order: true when it missed at most three heartbeats in a row. Ages are measured from the
// newest heartbeat of all nodes, so only the database's clock counts. The calling node is assumed to be alive.
std::vector<bool> alive_nodes(const std::vector<ClusterNode>& nodes, std::chrono::milliseconds heartbeat_interval);

}  // namespace fencepost::cluster
