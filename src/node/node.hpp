// A running node: everything wired together, from the configuration to the listening port.
//
// This is the only place that knows all modules. It starts from the bottom up and stops from the top down.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "pg/pool.hpp"

#include "config/config.hpp"

namespace fencepost {

struct NodeHooks {
  // Runs once, on a loop, when the node serves; the process is "up" after it. Null: nothing.
  std::function<void(std::uint16_t port)> on_ready;
  // Runs when the node cannot stop in time and the process is about to end as it is. Null: nothing.
  std::function<void()> before_abandoning;
  // Runs after the migrations and before the first worker; again when the database was lost meanwhile, so it must be
  // repeatable. Null: nothing.
  std::function<awaitable<>(pg::Pool&)> prepare;
};

// Runs a node in this process until SIGINT, SIGTERM or SIGHUP, or until it cannot start. Blocks the calling thread. A
// second signal while it stops ends the process at once; so does a stop that takes too long.
Result<void> run_node(const Config& config, NodeHooks hooks);

}  // namespace fencepost
