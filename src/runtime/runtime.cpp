#include "runtime/runtime.hpp"

#include <pthread.h>

#include <algorithm>

#include <fmt/format.h>

namespace fencepost {

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
      loop.context.run();
    });
  }
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
