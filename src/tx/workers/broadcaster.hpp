// The second half of a submitter's lane: broadcasts claimed transactions in the order in which they were added, and
// stores the outcomes. While one batch is broadcast, the submitter signs and claims the next ones, which gather here.
//
// A signer whose transaction was not accepted is held: its transactions of later batches are not sent, and become due
// again behind the refused one.
//
// Only memory: a claim that is lost here is found by query when its time is over. Pinned to the chain's loop.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/signers_under_way.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {

// A transaction that is claimed, and about to be sent.
struct Outgoing {
  DueSubmit due;
  std::string raw;  // "0x…"
  std::string tx_hash;
  bool sent_before = false;  // this or an earlier leader may have sent the bytes, with an unknown outcome
  std::int64_t claims = 0;   // number of claims of these bytes, including this one
  SteadyClock::TimePoint claimed_at;
};

class Broadcaster {
 public:
  struct Events {
    std::function<void()> on_room;  // a full queue has been emptied
    // These transactions of the signer are done. `accepted`: the chain has all of them.
    std::function<void(const std::string& signer, std::size_t count, bool accepted)> on_done;
  };
  // `limit`: transactions that may wait while a batch is broadcast.
  Broadcaster(ChainContext& chain, const SignersUnderWay& signers, std::size_t limit, Events events);

  void start() { worker_.start(); }
  // Broadcasts what was added, unless that takes longer than `at_most`.
  awaitable<> stop(std::chrono::milliseconds at_most) { return worker_.stop(at_most); }

  // The number of transactions that may be added.
  std::size_t room() const { return limit_ - std::min(limit_, waiting_.size()); }
  // Requires: each signer's transactions in nonce order, behind those that were added before.
  void add(std::vector<Outgoing> claimed);

 private:
  class Batch;

  awaitable<Worker::Next> broadcast_waiting();
  awaitable<std::vector<evm::SendResult>> send(const std::vector<Outgoing>& out);
  awaitable<Step> judge(const Outgoing& tx, const evm::SendResult& result);
  Step accepted(const Outgoing& tx, std::string why) const;
  Step held_back(const Outgoing& tx) const;
  void remember(const Outgoing& tx);
  void count(std::string_view result, std::size_t n);

  ChainContext& chain_;
  const SignersUnderWay& signers_;
  const std::size_t limit_;
  Events events_;
  std::vector<Outgoing> waiting_;
  Worker worker_;
};

}  // namespace fencepost::tx
