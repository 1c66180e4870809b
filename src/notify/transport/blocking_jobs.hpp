// Threads for work that blocks for long, with a bounded queue in front: a mail server that is slow to answer must not
// stop an event loop, nor the threads that sign.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>

#include "runtime/async.hpp"
#include "runtime/completion.hpp"

namespace fencepost::notify {

class BlockingJobs {
 public:
  struct Options {
    std::string name;  // of the threads, at most 12 characters
    std::size_t threads = 1;
    std::size_t waiting_limit = 1000;
    // Runs on each thread before it ends.
    std::function<void(std::size_t thread)> at_end = [](std::size_t) {};
  };

  explicit BlockingJobs(Options options);
  // Closes, and waits for the running jobs.
  ~BlockingJobs();
  BlockingJobs(const BlockingJobs&) = delete;
  BlockingJobs& operator=(const BlockingJobs&) = delete;

  // Runs work(thread) on one of the threads, in the order of the calls; `thread` counts from 0, and one job at a time
  // runs on it. The coroutine resumes on its own loop with the result or the exception. Returns nullopt, and never runs
  // the work, when `waiting_limit` jobs wait already or the jobs are closed. A cancelled caller returns at once
  // (operation_aborted); the work still runs. Any loop.
  template <class F>
  awaitable<std::optional<std::invoke_result_t<F&, std::size_t>>> run(F work) {
    using Value = std::invoke_result_t<F&, std::size_t>;
    using Outcome = std::expected<std::optional<Value>, std::exception_ptr>;
    const Executor home = co_await this_executor();
    const auto answer = std::make_shared<Completion<Outcome>>(home);
    Job job = [home, answer = answer, work = std::move(work)](std::optional<std::size_t> thread) mutable {
      auto outcome = std::make_shared<Outcome>(run_work<Outcome>(work, thread));
      // Moved, so that the thread holds no object of the loop.
      asio::post(home,
                 [answer = std::move(answer), outcome = std::move(outcome)] { answer->complete(std::move(*outcome)); });
    };
    if (!push(std::move(job))) co_return std::nullopt;
    co_await answer->wait();
    if (!answer->value()) std::rethrow_exception(answer->value().error());
    co_return std::move(*answer->value());
  }

  // Refuses new jobs and drops the waiting ones: their callers get nullopt. Running jobs continue. Idempotent.
  void close();
  // Returns true once all threads have run `at_end`, false when the time is over. Requires: closed.
  bool wait_for_end(std::chrono::milliseconds limit);

 private:
  // Called once: with the thread that runs it, or with nullopt when it is dropped.
  using Job = std::move_only_function<void(std::optional<std::size_t> thread)>;

  template <class Outcome, class F>
  static Outcome run_work(F& work, std::optional<std::size_t> thread) {
    if (!thread) return std::nullopt;
    try {
      return work(*thread);
    } catch (const std::exception&) {
      return std::unexpected(std::current_exception());
    }
  }

  bool push(Job job);
  void serve(std::size_t thread);

  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  bool closed_ = false;
  std::size_t ended_ = 0;  // threads
  std::vector<std::thread> threads_;
};

}  // namespace fencepost::notify
