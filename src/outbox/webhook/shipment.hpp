// Sends parcels to one receiver, several at the same time, and never two that share a subject out of their order.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "outbox/webhook/parcel.hpp"
#include "outbox/webhook/webhook_sender.hpp"
#include "runtime/completion.hpp"

namespace fencepost::outbox {

// Owned by everything that runs for it, so that a cancelled caller leaves nothing dangling: no further request begins,
// and those in flight end by their timeout.
class Shipment : public std::enable_shared_from_this<Shipment> {
 public:
  struct Options {
    std::size_t in_flight = 16;
    bool list = false;  // bodies are lists
    // So many failures in a row, without an answer that shows that the receiver works, mean that it is down: the rest
    // is not sent.
    std::size_t failures_until_down = 16;
    std::size_t failures_before = 0;
  };

  // Parcels are in the order of the log.
  Shipment(Executor home, std::shared_ptr<WebhookSender> sender, std::vector<Parcel> parcels, const Options& options);

  // Sends what can be sent. A parcel behind one that failed is not sent.
  awaitable<> send();

  std::vector<Parcel>& parcels() { return parcels_; }
  // nullopt: it was not sent.
  const std::optional<Outcome>& outcome(std::size_t parcel) const { return outcomes_[parcel]; }
  std::size_t failures_in_row() const { return failures_in_row_; }
  bool down() const { return failures_in_row_ >= options_.failures_until_down; }
  bool gone() const { return gone_; }
  // The longest wait that the receiver asked for.
  std::optional<std::chrono::milliseconds> retry_after() const { return retry_after_; }

 private:
  void launch();
  static awaitable<> send_one(std::shared_ptr<Shipment> self, std::size_t index);
  void finish(std::size_t index, Outcome outcome);

  Executor home_;
  std::shared_ptr<WebhookSender> sender_;
  std::vector<Parcel> parcels_;
  Options options_;
  std::vector<std::optional<Outcome>> outcomes_;
  std::vector<std::vector<std::size_t>> followers_;  // parcels that wait for this one
  std::vector<std::size_t> waits_for_;               // how many parcels this one waits for
  std::deque<std::size_t> ready_;
  std::size_t active_ = 0;
  std::size_t failures_in_row_;
  bool gone_ = false;
  std::optional<std::chrono::milliseconds> retry_after_;
  bool abandoned_ = false;
  Completion<bool> done_;
};

}  // namespace fencepost::outbox
