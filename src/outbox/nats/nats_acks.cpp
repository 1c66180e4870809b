#include "outbox/nats/nats_acks.hpp"

#include <algorithm>

namespace fencepost::outbox {

namespace {
constexpr std::chrono::milliseconds kLookInterval{50};
}

std::uint64_t NatsAcks::begin(std::size_t count) {
  const std::lock_guard lock(mutex_);
  first_ += answers_.size();
  answers_.assign(count, std::nullopt);
  answered_ = 0;
  refused_ = false;
  return first_;
}

void NatsAcks::receive(std::uint64_t ticket, Answer answer) {
  const std::lock_guard lock(mutex_);
  if (ticket < first_ || ticket - first_ >= answers_.size() || answers_[ticket - first_]) return;
  refused_ = refused_ || !answer;
  answers_[ticket - first_] = std::move(answer);
  ++answered_;
  changed_.notify_all();
}

void NatsAcks::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

bool NatsAcks::interrupted() const {
  const std::lock_guard lock(mutex_);
  return interrupted_;
}

bool NatsAcks::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

std::vector<std::optional<NatsAcks::Answer>> NatsAcks::wait(std::size_t sent, std::chrono::milliseconds patience,
                                                            const std::function<bool()>& gone) {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  auto seen = answered_;
  auto deadline = Clock::now() + patience;
  while (answered_ < sent && !interrupted_ && Clock::now() < deadline) {
    changed_.wait_for(lock, kLookInterval, [&] { return answered_ >= sent || interrupted_; });
    if (answered_ != seen) {
      seen = answered_;
      deadline = Clock::now() + patience;
      continue;
    }
    lock.unlock();
    const bool over = gone();
    lock.lock();
    if (over) break;
  }
  return answers_;
}

}  // namespace fencepost::outbox
