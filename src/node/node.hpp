// A running node: wires all modules together, from the configuration to the listening port.
//
// Only this file knows all modules. Modules start in order of dependency and stop in reverse order.
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
  // Runs once, on a loop, when the node is ready. Null: nothing.
  std::function<void(std::uint16_t port)> on_ready;
  // Runs when the node did not stop in time, just before the process exits at once. Null: nothing.
  std::function<void()> before_abandoning;
  // Runs after the migrations and before the first worker. Runs again if the connection was lost meanwhile, so it must
  // be idempotent. Null: nothing.
  std::function<awaitable<>(pg::Pool&)> prepare;
};

// Runs a node in this process until SIGINT, SIGTERM or SIGHUP, or until it cannot start. Blocks the calling thread. A
// second signal while it stops ends the process at once; so does a stop that takes too long.
Result<void> run_node(const Config& config, NodeHooks hooks);

}  // namespace fencepost
