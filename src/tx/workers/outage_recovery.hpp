// Ends the waits that an outage of all endpoints of a chain has caused: transactions whose broadcast failed retry after
// up to a minute, which is too long once an endpoint answers again.
#pragma once

#include <chrono>

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

class OutageRecovery {
 public:
  explicit OutageRecovery(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

  // An endpoint answers again; none did for `lasted`. On the chain's loop.
  void on_usable(std::chrono::milliseconds lasted);

 private:
  awaitable<Worker::Next> recover();

  ChainContext& chain_;
  bool due_ = false;
  Worker worker_;
};

}  // namespace fencepost::tx
