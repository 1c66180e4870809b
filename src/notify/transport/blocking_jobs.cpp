#include "notify/transport/blocking_jobs.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <pthread.h>

namespace fencepost::notify {

BlockingJobs::BlockingJobs(Options options) : options_(std::move(options)) {
  const auto count = std::max<std::size_t>(1, options_.threads);
  for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this, i] { serve(i); });
}

BlockingJobs::~BlockingJobs() {
  close();
  for (auto& thread : threads_) thread.join();
}

bool BlockingJobs::push(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || waiting_.size() >= options_.waiting_limit) return false;
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

void BlockingJobs::close() {
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(waiting_);
  }
  changed_.notify_all();
  for (auto& job : dropped) job(std::nullopt);
}

bool BlockingJobs::wait_for_end(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return ended_ == threads_.size(); });
}

void BlockingJobs::serve(std::size_t thread) {
  pthread_setname_np(pthread_self(), fmt::format("{}-{}", options_.name, thread).c_str());
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) break;
    auto job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job(thread);
    job = nullptr;  // its captures are freed before the next wait, which may be long
    lock.lock();
  }
  lock.unlock();
  options_.at_end(thread);
  lock.lock();
  ++ended_;
  changed_.notify_all();
}

}  // namespace fencepost::notify
