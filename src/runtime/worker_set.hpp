// Owns the workers of one loop: starts them in the order in which they were added, and stops them all at once.
//
//   auto& submitter = workers.add<Submitter>(context);
//
// A worker has `void start()` and `awaitable<> stop()`, both called on the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/async.hpp"
#include "runtime/gather.hpp"

namespace fencepost {

class WorkerSet {
 public:
  // The worker lives as long as the set.
  template <class W, class... Args>
  W& add(Args&&... args) {
    auto worker = std::make_shared<W>(std::forward<Args>(args)...);
    W& added = *worker;
    members_.push_back(
        {.worker = std::move(worker), .start = [&added] { added.start(); }, .stop = [&added] { return added.stop(); }});
    return added;
  }

  void start() {
    for (const auto& member : members_) member.start();
  }

  // Stops all workers concurrently: a slow step delays only its own worker.
  awaitable<> stop() {
    std::vector<awaitable<>> stops;
    stops.reserve(members_.size());
    for (const auto& member : members_) stops.push_back(member.stop());
    co_await gather(std::move(stops));
  }

 private:
  struct Member {
    std::shared_ptr<void> worker;
    std::function<void()> start;
    std::function<awaitable<>()> stop;
  };

  std::vector<Member> members_;
};

}  // namespace fencepost
