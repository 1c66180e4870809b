// Removes the rows that mail does not need any more, once an hour (store/cleanup_store.hpp): mails with an outcome
// after email.log_retention, codes and requests for codes after two days, addresses that nothing refers to. Several
// nodes may do so at the same time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "notify/store/cleanup_store.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"

namespace fencepost::notify {

class MailCleaner {
 public:
  // `batch`: how many rows a statement looks at.
  MailCleaner(Executor executor, pg::Database& database, std::chrono::milliseconds retention, Metrics& metrics,
              std::int64_t batch = 1000);

  // Call both on the loop of the executor.
  void start() { worker_.start(); }
  awaitable<> stop(std::chrono::milliseconds limit) { return worker_.stop(limit); }

  // One hour's work. Returns how many rows were removed.
  awaitable<std::int64_t> clean();

 private:
  struct Walk {
    const pg::Statement& statement;
    std::chrono::milliseconds age;
    int batches;             // in an hour
    std::int64_t after = 0;  // where the next hour continues, if this one's batches are used up
  };
  awaitable<std::int64_t> continue_walk(Walk& walk);
  awaitable<std::int64_t> forget_requests();

  pg::Database& database_;
  std::int64_t batch_;
  std::array<Walk, 3> mails_;
  Walk addresses_;
  Worker worker_;
};

}  // namespace fencepost::notify
