// The requests that wait until a transaction is signed and its bytes are stored (eth_sendTransaction).
//
// The node that signs announces the hash after the commit, so waiting costs no query. A worker also looks into the
// database for requests that wait longer: another node may lead the signer, or an announcement may be lost.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/uuid.hpp"
#include "pg/database.hpp"
#include "runtime/completion.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"

namespace fencepost::tx {

// What became of a transaction: it has a hash, or it cannot get one without an operator.
struct HashOutcome {
  std::optional<std::string> tx_hash;
  std::string state;  // with no hash: STUCK or an end
  std::string why;    // with no hash: the error of the last step
};

class HashWaits {
 public:
  // `limit`: requests that may wait at once.
  HashWaits(Executor home, pg::Database& database, std::size_t limit, Metrics& metrics);

  // One waiting request. Create it before the transaction, so that no announcement is missed. Pinned to one loop.
  class Wait {
   public:
    Wait(HashWaits& waits, Uuid tx_id, Executor home);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    // nullopt when neither a hash nor an end is known at the deadline.
    awaitable<std::optional<HashOutcome>> outcome(Deadline deadline);

   private:
    friend class HashWaits;
    HashWaits& waits_;
    Uuid tx_id_;
    Executor home_;
    std::shared_ptr<Completion<HashOutcome>> done_;
    Deadline look_at_;                         // when the worker looks into the database; guarded by mutex_
    std::chrono::milliseconds look_again_in_;  // guarded by mutex_
  };
  // nullptr when too many requests wait. Any loop.
  std::unique_ptr<Wait> begin(Uuid tx_id, Executor home);

  // These transactions are signed and stored. Any thread.
  void announce(std::vector<std::pair<Uuid, std::string>> stored);

  // On home.
  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

 private:
  awaitable<Worker::Next> look();
  std::vector<Uuid> due(Deadline now);
  void deliver(std::vector<std::pair<Uuid, HashOutcome>> outcomes);

  pg::Database& database_;
  std::size_t limit_;
  std::mutex mutex_;  // guards waits_ and the look times
  std::unordered_map<Uuid, std::vector<Wait*>> waits_;
  std::size_t count_ = 0;
  Metrics::Gauge& waiting_gauge_;
  Worker worker_;
};

}  // namespace fencepost::tx
