#include "runtime/runtime.hpp"

#include <pthread.h>

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace fencepost {
namespace {
constexpr std::size_t kNotALoop = static_cast<std::size_t>(-1);
thread_local std::size_t current_loop = kNotALoop;
}  // namespace

Runtime::Runtime(const Options& options) : cpu_(std::max<std::size_t>(1, options.cpu_threads)) {
  const std::size_t threads =
      options.threads != 0 ? options.threads : std::max<std::size_t>(1, std::thread::hardware_concurrency());
  for (std::size_t i = 0; i < threads; ++i) loops_.push_back(std::make_unique<Loop>());
}

Runtime::~Runtime() { stop(); }

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
  struct Tally {
    std::size_t left;
    std::exception_ptr failure;
    std::shared_ptr<Completion<bool>> finished;
  };
  const Executor home = executor(current());
  const auto tally = std::make_shared<Tally>(loops_.size(), nullptr, std::make_shared<Completion<bool>>(home));
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    asio::co_spawn(loop(i), task(i), [home, tally](const std::exception_ptr& failure) {
      asio::post(home, [tally, failure] {
        if (failure && !tally->failure) tally->failure = failure;
        if (--tally->left == 0) tally->finished->complete(true);
      });
    });
  }
  co_await tally->finished->wait();
  if (tally->failure) std::rethrow_exception(tally->failure);
}

std::size_t Runtime::current() {
  assert(current_loop != kNotALoop && "called outside the runtime's loops");
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
