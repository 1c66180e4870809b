#include "evm/update_delivery.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "runtime/log.hpp"

namespace fencepost::evm {

UpdateDelivery::UpdateDelivery(std::string name, std::size_t limit, BackoffOptions backoff, const Clock& clock,
                               Metrics::Counter& errors)
    : name_(std::move(name)),
      limit_(std::max<std::size_t>(1, limit)),
      backoff_(backoff),
      clock_(clock),
      errors_(errors),
      random_(SystemRandom().next()) {}

void UpdateDelivery::subscribe(Subscriber subscriber) {
  seats_.push_back(std::make_unique<Seat>(std::move(subscriber), backoff_, random_));
}

void UpdateDelivery::add(ChainUpdate update) {
  const auto shared = std::make_shared<const ChainUpdate>(std::move(update));
  for (const auto& seat : seats_) seat->due.push_back(shared);
}

awaitable<> UpdateDelivery::deliver() {
  for (const auto& seat : seats_) co_await serve(*seat);
}

awaitable<> UpdateDelivery::serve(Seat& seat) {
  while (!seat.due.empty() && clock_.now() >= seat.not_before) {
    const auto update = seat.due.front();
    std::exception_ptr failure;
    // A third place where exceptions end, beside request and worker: each subscriber is a worker whose work is given
    // to it, and the others must not suffer from it.
    try {
      co_await seat.tell(*update);
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    if (!failure) {
      seat.due.pop_front();
      seat.backoff.reset();
      seat.not_before = {};
      continue;
    }
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() != asio::cancellation_type::none) std::rethrow_exception(failure);
    errors_.Increment();
    seat.not_before = clock_.now() + seat.backoff.next();
    const auto first = update->blocks.empty() ? -1 : update->blocks.front().header.number;
    log::error("a subscriber failed and will be told again", error_of(failure),
               {{"chain", name_}, {"firstBlock", first}, {"waiting", seat.due.size()}});
  }
}

bool UpdateDelivery::idle() const {
  return std::ranges::all_of(seats_, [](const auto& seat) { return seat->due.empty(); });
}

bool UpdateDelivery::full() const {
  return std::ranges::any_of(seats_, [this](const auto& seat) { return seat->due.size() >= limit_; });
}

}  // namespace fencepost::evm
