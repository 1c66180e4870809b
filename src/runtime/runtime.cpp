#include "runtime/runtime.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <pthread.h>

#include "base/error.hpp"

namespace fencepost {
namespace {
constexpr std::size_t kNotALoop = static_cast<std::size_t>(-1);
thread_local std::size_t current_loop = kNotALoop;

// Shared with the tasks, which may outlive a cancelled caller. It owns the closure that their coroutines use.
struct Tally {
  Tally(std::function<awaitable<>(std::size_t)> t, std::size_t loops, Executor home)
      : task(std::move(t)), left(loops), finished(home) {}

  const std::function<awaitable<>(std::size_t)> task;
  // Used only on the caller's loop:
  std::size_t left;
  std::exception_ptr failure;
  Completion<bool> finished;
};

awaitable<> run_task(std::shared_ptr<Tally> tally, std::size_t loop) {
  co_await tally->task(loop);
}

}  // namespace

Runtime::Runtime(const Options& options) : cpu_(std::max<std::size_t>(1, options.cpu_threads)) {
  const std::size_t threads =
      options.threads != 0 ? options.threads : std::max<std::size_t>(1, std::thread::hardware_concurrency());
  for (std::size_t i = 0; i < threads; ++i) loops_.push_back(std::make_unique<Loop>());
}

Runtime::~Runtime() {
  stop();
}

void Runtime::start() {
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    auto& loop = *loops_[i];
    loop.thread = std::thread([&loop, i] {
      pthread_setname_np(pthread_self(), fmt::format("fp-loop-{}", i).c_str());
      current_loop = i;
      loop.context.run();
    });
  }
}

awaitable<> Runtime::on_every_loop(std::function<awaitable<>(std::size_t)> task) {
  const Executor home = co_await this_executor();
  const auto tally = std::make_shared<Tally>(std::move(task), loops_.size(), home);
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    asio::co_spawn(loop(i), run_task(tally, i), [home, tally = tally](const std::exception_ptr& failure) mutable {
      asio::post(home, [tally = std::move(tally), failure] {
        if (failure && !tally->failure) tally->failure = failure;
        if (--tally->left == 0) tally->finished.complete(true);
      });
    });
  }
  co_await tally->finished.wait();
  if (tally->failure) std::rethrow_exception(tally->failure);
}

std::size_t Runtime::current() {
  if (current_loop == kNotALoop) throw Exception(internal("not_on_a_loop", "this thread runs no loop; use a loop's"));
  return current_loop;
}

void Runtime::stop() {
  for (auto& loop : loops_) {
    loop->guard.reset();
    loop->context.stop();
  }
  for (auto& loop : loops_) {
    if (loop->thread.joinable()) loop->thread.join();
  }
  cpu_.stop();
  cpu_.join();
}

}  // namespace fencepost
