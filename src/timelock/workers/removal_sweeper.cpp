#include "timelock/workers/removal_sweeper.hpp"

#include "runtime/log.hpp"
#include "timelock/store/removal_store.hpp"

namespace fencepost::timelock {

using namespace std::chrono_literals;

RemovalSweeper::RemovalSweeper(ScannerParts parts)
    : parts_(std::move(parts)),
      worker_(
          parts_.chain.home(),
          {.name = "timelock_removal",
           .chain = parts_.chain.name(),
           .interval = 60s,
           .backoff = {.initial = 1s, .cap = 5min}},
          [this] { return step(); }, parts_.metrics) {}

awaitable<Worker::Next> RemovalSweeper::step() {
  auto& pool = parts_.database.pool();
  for (const auto& key : co_await unfinished_removals(pool, parts_.chain.id())) {
    co_await finish_removal(pool, key);
    log::info("finished the removal of a contract", {{"chain", parts_.chain.name()}, {"contract", key.address}});
  }
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::timelock
