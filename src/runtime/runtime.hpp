// The threads of a node: N event loops, one io_context and one thread each, and a small pool for work that
// would block a loop (signing, scrypt).
//
// Objects of a loop (connections, lanes, workers) are used only on that loop's thread; other threads post work to the
// loop. With one thread per io_context, objects of a loop need no locks.
#pragma once

#include <cstddef>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include "runtime/async.hpp"
#include "runtime/completion.hpp"

namespace fencepost {

class Runtime {
 public:
  struct Options {
    std::size_t threads = 0;      // 0: one per core
    std::size_t cpu_threads = 1;  // for offload()
  };

  explicit Runtime(const Options& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  std::size_t size() const { return loops_.size(); }
  asio::io_context& loop(std::size_t index) { return loops_[index]->context; }
  Executor executor(std::size_t index) { return loop(index).get_executor(); }

  void start();
  // Ends the loops at once and joins the threads. Requires: the caller is on none of these threads, and components that
  // need an orderly end have stopped. Idempotent.
  void stop();

  // Runs a coroutine on a loop and blocks the calling thread until it ends. Requires: not a loop's thread.
  template <class T>
  T run_on(std::size_t index, awaitable<T> task) {
    return asio::co_spawn(loop(index), std::move(task), asio::use_future).get();
  }

  // Runs `work` on the CPU pool; the coroutine resumes on its own loop with the result or the exception. A cancelled
  // caller returns at once (operation_aborted); the work still runs to its end, and its result is dropped.
  template <class F>
  awaitable<std::invoke_result_t<F>> offload(F work) {
    using Value = std::invoke_result_t<F>;
    using Outcome = std::expected<Value, std::exception_ptr>;
    const Executor home = co_await this_executor();
    const auto answer = std::make_shared<Completion<Outcome>>(home);
    asio::post(cpu_, [home, answer = answer, work = std::move(work)]() mutable {
      auto outcome = std::make_shared<Outcome>(run_work<Outcome>(work));
      // Moved, so that the pool's thread holds no object of the loop.
      asio::post(home,
                 [answer = std::move(answer), outcome = std::move(outcome)] { answer->complete(std::move(*outcome)); });
    });
    co_await answer->wait();
    if (!answer->value()) std::rethrow_exception(answer->value().error());
    if constexpr (!std::is_void_v<Value>) co_return std::move(*answer->value());
  }

  // Runs task(i) on every loop i, all at the same time, and returns on the caller's loop when the last has finished.
  // Then rethrows the first exception. A cancelled caller returns at once; the tasks continue.
  awaitable<> on_every_loop(std::function<awaitable<>(std::size_t)> task);

  // The index of the loop that the calling thread runs. Throws Exception "not_on_a_loop" on any other thread.
  static std::size_t current();

 private:
  struct Loop {
    asio::io_context context{1};
    asio::executor_work_guard<Executor> guard{context.get_executor()};
    std::thread thread;
  };

  template <class Outcome, class F>
  static Outcome run_work(F& work) {
    try {
      if constexpr (std::is_void_v<typename Outcome::value_type>) {
        work();
        return {};
      } else {
        return work();
      }
    } catch (const std::exception&) {
      return std::unexpected(std::current_exception());
    }
  }

  std::vector<std::unique_ptr<Loop>> loops_;
  asio::thread_pool cpu_;
};

// Runs one coroutine to its end on a new event loop in the calling thread: for command-line tools and tests.
template <class T>
T run_blocking(awaitable<T> task) {
  asio::io_context context(1);
  auto future = asio::co_spawn(context, std::move(task), asio::use_future);
  context.run();
  return future.get();
}

}  // namespace fencepost
