// Wakes HTTP requests that wait for a transaction to change (?wait=…). Only changes that this node makes wake a request
// at once; for changes by other nodes, a waiting request also polls the database.
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
  // Listens for changes of one transaction, until it goes out of scope. Create the listener before reading the
  // transaction, so that a change between the two is not missed.
  class Listener {
   public:
    Listener(TxChangeSignal& signal, Uuid tx_id, Executor home);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    // True when the transaction changed since the listener was created or last returned true; false after `patience`.
    // Requires: called on the loop `home`.
    awaitable<bool> changed(std::chrono::milliseconds patience);

   private:
    friend class TxChangeSignal;
    TxChangeSignal& signal_;
    Uuid tx_id_;
    Executor home_;
    std::shared_ptr<Completion<bool>> heard_;
  };

  // Wakes the listeners of the transactions that changed. Any thread.
  void raise(std::span<const Uuid> changed);

 private:
  std::mutex mutex_;
  std::unordered_map<Uuid, std::vector<Listener*>> listeners_;
};

}  // namespace fencepost::tx
