#include "notify/transport/blocking_jobs.hpp"

#include <future>
#include <latch>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>

#include "runtime/runtime.hpp"

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;

// Jobs, and a loop that calls them.
class Fixture {
 public:
  explicit Fixture(BlockingJobs::Options options) : jobs_(std::make_unique<BlockingJobs>(std::move(options))) {
    runtime_.start();
  }

  template <class F>
  auto start(F work) {
    return asio::co_spawn(runtime_.loop(0), jobs_->run(std::move(work)), asio::use_future);
  }
  template <class F>
  auto start(F work, asio::cancellation_signal& signal) {
    return asio::co_spawn(runtime_.loop(0), jobs_->run(std::move(work)),
                          asio::bind_cancellation_slot(signal.slot(), asio::use_future));
  }
  void cancel(asio::cancellation_signal& signal) {
    asio::post(runtime_.loop(0), [&] { signal.emit(asio::cancellation_type::terminal); });
  }
  // Returns when the loop has done all that was posted before.
  void drain() {
    std::promise<void> reached;
    asio::post(runtime_.loop(0), [&] { reached.set_value(); });
    reached.get_future().get();
  }

  BlockingJobs& jobs() { return *jobs_; }
  void destroy() { jobs_.reset(); }
  std::thread::id loop_thread() {
    std::promise<std::thread::id> id;
    asio::post(runtime_.loop(0), [&] { id.set_value(std::this_thread::get_id()); });
    return id.get_future().get();
  }

 private:
  Runtime runtime_{{.threads = 1}};
  std::unique_ptr<BlockingJobs> jobs_;
};

// A job that runs until it is released.
class Blocker {
 public:
  auto work() {
    return [this](std::size_t) {
      running_.count_down();
      released_.wait();
      return 0;
    };
  }
  void wait_until_running() { running_.wait(); }
  void release() { released_.count_down(); }

 private:
  std::latch running_{1};
  std::latch released_{1};
};

TEST(blocking_jobs, work_runs_on_another_thread_and_returns_its_result) {
  Fixture fixture({.name = "test"});
  auto thread = fixture.start([](std::size_t) { return std::this_thread::get_id(); });
  EXPECT_NE(thread.get(), fixture.loop_thread());
}

TEST(blocking_jobs, an_exception_reaches_the_caller_and_the_thread_goes_on) {
  Fixture fixture({.name = "test"});
  auto failing = fixture.start([](std::size_t) -> int { throw std::runtime_error("no"); });
  EXPECT_THROW(failing.get(), std::runtime_error);
  EXPECT_EQ(fixture.start([](std::size_t) { return 7; }).get(), 7);
}

TEST(blocking_jobs, one_thread_runs_the_jobs_in_their_order) {
  Fixture fixture({.name = "test"});
  std::vector<int> order;  // one thread at a time
  std::vector<std::future<std::optional<int>>> jobs;
  for (int i = 0; i < 100; ++i) {
    jobs.push_back(fixture.start([&order, i](std::size_t) {
      order.push_back(i);
      return i;
    }));
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(jobs[static_cast<std::size_t>(i)].get(), i);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(blocking_jobs, each_thread_has_a_number_of_its_own) {
  Fixture fixture({.name = "test", .threads = 3});
  std::latch all_running(3);  // three jobs at the same time need three threads
  std::vector<std::future<std::optional<std::size_t>>> jobs;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(fixture.start([&](std::size_t thread) {
      all_running.arrive_and_wait();
      return thread;
    }));
  }
  std::set<std::size_t> numbers;
  for (auto& job : jobs) numbers.insert(*job.get());
  EXPECT_EQ(numbers, (std::set<std::size_t>{0, 1, 2}));
}

TEST(blocking_jobs, a_job_too_many_is_refused_at_once) {
  Fixture fixture({.name = "test", .waiting_limit = 2});
  Blocker blocker;
  auto running = fixture.start(blocker.work());
  blocker.wait_until_running();
  const auto one = [](std::size_t) { return 1; };
  auto first = fixture.start(one);
  auto second = fixture.start(one);
  EXPECT_EQ(fixture.start(one).get(), std::nullopt);
  blocker.release();
  EXPECT_EQ(first.get(), 1);
  EXPECT_EQ(second.get(), 1);
  EXPECT_EQ(running.get(), 0);
}

TEST(blocking_jobs, closing_drops_the_waiting_jobs_and_lets_the_running_one_end) {
  Fixture fixture({.name = "test"});
  Blocker blocker;
  auto running = fixture.start(blocker.work());
  blocker.wait_until_running();
  bool ran = false;
  const auto note = [&](std::size_t) { return ran = true; };
  auto waiting = fixture.start(note);
  fixture.drain();
  fixture.jobs().close();
  fixture.jobs().close();
  EXPECT_EQ(waiting.get(), std::nullopt);
  EXPECT_EQ(fixture.start(note).get(), std::nullopt);
  EXPECT_FALSE(fixture.jobs().wait_for_end(1ms));
  blocker.release();
  EXPECT_TRUE(fixture.jobs().wait_for_end(20s));
  EXPECT_EQ(running.get(), 0);
  EXPECT_FALSE(ran);
}

TEST(blocking_jobs, each_thread_cleans_up_at_its_end) {
  std::mutex mutex;
  std::set<std::size_t> ended;
  {
    const BlockingJobs jobs({.name = "test", .threads = 4, .at_end = [&](std::size_t thread) {
                               const std::lock_guard lock(mutex);
                               ended.insert(thread);
                             }});
  }
  EXPECT_EQ(ended, (std::set<std::size_t>{0, 1, 2, 3}));
}

TEST(blocking_jobs, a_cancelled_caller_returns_at_once_and_the_work_still_runs) {
  Fixture fixture({.name = "test"});
  Blocker blocker;
  asio::cancellation_signal signal;
  auto cancelled = fixture.start(blocker.work(), signal);
  blocker.wait_until_running();
  fixture.cancel(signal);
  EXPECT_THROW(cancelled.get(), boost::system::system_error);
  auto next = fixture.start([](std::size_t) { return 1; });
  blocker.release();
  EXPECT_EQ(next.get(), 1);
}

TEST(blocking_jobs, callers_may_outlive_the_jobs) {
  Fixture fixture({.name = "test"});
  Blocker blocker;
  auto running = fixture.start(blocker.work());
  blocker.wait_until_running();
  auto waiting = fixture.start([](std::size_t) { return 1; });
  fixture.drain();
  blocker.release();
  fixture.destroy();
  EXPECT_EQ(running.get(), 0);
  waiting.get();  // dropped, or run just before
}

}  // namespace
}  // namespace fencepost::notify
