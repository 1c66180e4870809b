#include "outbox/webhook/shipment.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <boost/asio/co_spawn.hpp>

namespace fencepost::outbox {

Shipment::Shipment(Executor home, std::shared_ptr<WebhookSender> sender, std::vector<Parcel> parcels,
                   const Options& options)
    : home_(home),
      sender_(std::move(sender)),
      parcels_(std::move(parcels)),
      options_(options),
      outcomes_(parcels_.size()),
      followers_(parcels_.size()),
      waits_for_(parcels_.size()),
      failures_in_row_(options.failures_before),
      done_(home) {
  std::map<std::string_view, std::size_t> last;  // parcel of each subject
  for (std::size_t i = 0; i < parcels_.size(); ++i) {
    std::set<std::size_t> before;
    for (const auto& event : parcels_[i].events) {
      const auto [place, is_first] = last.try_emplace(event.subject, i);
      if (!is_first && place->second != i) before.insert(std::exchange(place->second, i));
    }
    for (const auto index : before) followers_[index].push_back(i);
    waits_for_[i] = before.size();
    if (before.empty()) ready_.push_back(i);
  }
}

awaitable<> Shipment::send() {
  struct Abandon {
    bool& flag;
    ~Abandon() { flag = true; }
  } const abandon{abandoned_};
  const auto self = shared_from_this();
  launch();
  if (active_ > 0) co_await done_.wait();
}

void Shipment::launch() {
  while (!ready_.empty() && active_ < options_.in_flight && !abandoned_ && !gone_ && !down()) {
    const auto index = ready_.front();
    ready_.pop_front();
    ++active_;
    asio::co_spawn(home_, send_one(shared_from_this(), index),
                   [self = shared_from_this(), index](const std::exception_ptr& failure) {
                     if (!failure) return;
                     self->finish(index, Outcome{.kind = Outcome::Kind::kDown, .error = error_of(failure).to_string()});
                   });
  }
}

awaitable<> Shipment::send_one(std::shared_ptr<Shipment> self, std::size_t index) {
  const auto& parcel = self->parcels_[index];
  auto outcome =
      co_await self->sender_->send(parcel.message, body_of(parcel, self->options_.list), self->options_.list);
  self->finish(index, std::move(outcome));
}

void Shipment::finish(std::size_t index, Outcome outcome) {
  --active_;
  failures_in_row_ = outcome.kind == Outcome::Kind::kDown ? failures_in_row_ + 1 : 0;
  retry_after_ = std::max(retry_after_, outcome.retry_after);  // nullopt is less than any
  gone_ = gone_ || outcome.kind == Outcome::Kind::kGone;
  if (outcome.delivered()) {
    for (const auto follower : followers_[index]) {
      if (--waits_for_[follower] == 0) ready_.push_back(follower);
    }
  }
  outcomes_[index] = std::move(outcome);
  launch();
  if (active_ == 0) done_.complete(true);
}

}  // namespace fencepost::outbox
