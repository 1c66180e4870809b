#include "runtime/stop_sequence.hpp"

#include <boost/asio/co_spawn.hpp>

#include "base/error.hpp"
#include "runtime/completion.hpp"
#include "runtime/log.hpp"

namespace fencepost {

awaitable<> StopSequence::run_stage(std::shared_ptr<Named> stage, std::chrono::milliseconds left) {
  co_await stage->stop(left);
}

void StopSequence::add(std::string name, Stage stop) {
  stages_.push_back({std::move(name), std::move(stop)});
}

awaitable<bool> StopSequence::run(std::chrono::milliseconds total) {
  const auto executor = co_await this_executor();
  const auto deadline = std::chrono::steady_clock::now() + total;
  while (!stages_.empty()) {
    const auto stage = std::make_shared<Named>(std::move(stages_.back()));
    stages_.pop_back();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const auto finished = std::make_shared<Completion<std::exception_ptr>>(executor);
    asio::co_spawn(executor, run_stage(stage, std::max(left / 2, std::chrono::milliseconds(0))),
                   [finished](const std::exception_ptr& failure) { finished->complete(failure); });
    if (!co_await finished->wait(deadline)) {
      log::error("shutdown stage did not finish in time; the remaining stages are skipped", {{"stage", stage->name}});
      co_return false;
    }
    if (finished->value()) {
      log::error("shutdown stage failed", error_of(finished->value()), {{"stage", stage->name}});
    } else {
      log::debug("stopped", {{"stage", stage->name}});
    }
  }
  co_return true;
}

}  // namespace fencepost
