// Wakes HTTP requests that wait for a transaction to change (?wait=…). Only changes that this node makes are heard at
// once; a request that waits also looks at the database from time to time.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/uuid.hpp"
#include "runtime/completion.hpp"

namespace fencepost::tx {

class TxChangeSignal {
 public:
  // One interest in one transaction, until it goes out of scope. Listen first, then look: a change between the two is
  // heard.
  class Listener {
   public:
    Listener(TxChangeSignal& signal, Uuid tx_id, Executor home);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    // True: it changed, at least once since this was made or last asked. On the loop that made it.
    awaitable<bool> changed(std::chrono::milliseconds patience);

   private:
    friend class TxChangeSignal;
    TxChangeSignal& signal_;
    Uuid tx_id_;
    Executor home_;
    std::shared_ptr<Completion<bool>> heard_;
  };

  // These transactions have changed: wakes their listeners. Any thread.
  void raise(std::span<const Uuid> changed);

 private:
  std::mutex mutex_;
  std::unordered_map<Uuid, std::vector<Listener*>> listeners_;
};

}  // namespace fencepost::tx
