// Broadcasts the same bytes again while there is no receipt: every `resubmit.interval`, and at once after a reorg or
// when an operator asks for it. Each broadcast is claimed first, so that no two nodes and no two runs repeat it.
#pragma once

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

class Resubmitter {
 public:
  explicit Resubmitter(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  void wake() { worker_.wake(); }

 private:
  awaitable<Worker::Next> resubmit_due();
  void count(std::string_view result, std::size_t n);
  std::optional<Step> judge(const Resubmit& sent, const evm::SendResult& result);

  ChainContext& chain_;
  Worker worker_;
};

}  // namespace fencepost::tx
