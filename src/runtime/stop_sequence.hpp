// Stopping in order: what was started last stops first, so that nobody loses what they stand on.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/async.hpp"

namespace fencepost {

class StopSequence {
 public:
  // A stage is told how long it may take: half of what is left, so that a slow one leaves time for the others.
  using Stage = std::function<awaitable<>(std::chrono::milliseconds limit)>;

  // Call right after the thing has started.
  void add(std::string name, Stage stop);

  // Runs the stages, last added first, on the caller's loop. A stage that throws is logged and the next one runs. False
  // when `total` ran out first: the stage that hung is named in the log and the rest did not run; the process should
  // simply end, since everything it owns survives that.
  awaitable<bool> run(std::chrono::milliseconds total);

 private:
  struct Named {
    std::string name;
    Stage stop;
  };

  // Holds the stage while it runs: one that hangs outlives the sequence.
  static awaitable<> run_stage(std::shared_ptr<Named> stage, std::chrono::milliseconds left);

  std::vector<Named> stages_;
};

}  // namespace fencepost
