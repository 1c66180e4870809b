// Watches each signer's lowest nonce without a receipt. After `stuck.after` it is STUCK; and when the chain counts the
// nonce as used though none of our attempts is to be found, somebody else has taken it.
//
// Only the lowest one: those behind it are waiting, not stuck.
#pragma once

#include "runtime/worker.hpp"
#include "tx/model/finality.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {

class StuckWatcher {
 public:
  explicit StuckWatcher(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  void wake() { worker_.wake(); }

 private:
  awaitable<Worker::Next> watch();
  bool is_overdue(const OpenHead& head) const;
  void take_turns(std::vector<OpenHead>& suspicious);
  // Whether that was its end, so that the signer has another head now.
  awaitable<bool> examine(OpenHead head, std::int64_t nonce_at_head, std::size_t endpoint);
  Step stuck(const OpenHead& head, std::string sub_state, std::string why) const;

  ChainContext& chain_;
  std::size_t turn_ = 0;
  Worker worker_;
};

}  // namespace fencepost::tx
