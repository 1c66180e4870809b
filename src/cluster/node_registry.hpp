// Which nodes share this database: the table cluster_node, one row for each process.
//
// Functions throw as pg::Pool does; each may be repeated.
#pragma once

#include <chrono>
#include <cstdint>
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

struct ClusterNode {
  std::string node_id;
  std::string advertise_url;
  std::string version;
  TimePoint started_at;
  TimePoint heartbeat_at;
  std::int64_t leases = 0;  // of signers, that have not expired
};

// Lists the node, or says that it still lives. Removes nodes that have been silent for an hour and own no lease.
awaitable<> heartbeat(pg::Pool& pool, NodeIdentity node);

// Removes a node that stops.
awaitable<> forget_node(pg::Pool& pool, std::string node_id,
                        std::optional<std::chrono::milliseconds> timeout = std::nullopt);

// In the order in which they started.
awaitable<std::vector<ClusterNode>> list_nodes(pg::Pool& pool);

// Which of the nodes missed at most three heartbeats in a row, in the same order. Measured from the newest heartbeat of
// all, so that only the database's clock counts: the node that asks is alive itself.
std::vector<bool> alive_nodes(const std::vector<ClusterNode>& nodes, std::chrono::milliseconds heartbeat_interval);

}  // namespace fencepost::cluster
