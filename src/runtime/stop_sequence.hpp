// An ordered shutdown: the component started last stops first, so that none loses a component that it depends on.
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
  // A stage gets its time limit: half of the remaining time, so that a slow stage leaves time for the others.
  using Stage = std::function<awaitable<>(std::chrono::milliseconds limit)>;

  // Call right after the component has started.
  void add(std::string name, Stage stop);

  // Runs the stages on the caller's loop, last added first. A stage that throws is logged and the next one runs.
  // Returns false when `total` passed first: the log names the stage that hung, and the remaining stages did not run.
  // The process should then exit: its state is in PostgreSQL.
  awaitable<bool> run(std::chrono::milliseconds total);

 private:
  struct Named {
    std::string name;
    Stage stop;
  };

  // Owns the stage while it runs: a stage that hangs outlives the sequence.
  static awaitable<> run_stage(std::shared_ptr<Named> stage, std::chrono::milliseconds left);

  std::vector<Named> stages_;
};

}  // namespace fencepost
