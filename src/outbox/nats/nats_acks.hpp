// The acknowledgements of one batch of messages: libnats's thread brings them, the publishing thread waits for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <expected>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "outbox/nats/nats_message.hpp"

namespace fencepost::outbox {

class NatsAcks {
 public:
  using Answer = std::expected<NatsAck, NatsRefusal>;

  // A new batch. Answers to earlier batches are ignored from now on. Returns the ticket of its first message; the
  // others follow. The ticket is a part of the subject that the server answers to.
  std::uint64_t begin(std::size_t count);
  // Any thread. An answer with a ticket of no message is ignored.
  void receive(std::uint64_t ticket, Answer answer);
  // Any thread. Ends the wait, and every later one.
  void interrupt();

  // Whether an answer so far is a refusal: there is no use in sending the rest.
  bool refused() const;

  // Waits until the first `sent` messages of the batch are answered, or `patience` has passed since the last answer, or
  // `gone()` returns true (asked a few times a second), or interrupt(). Returns the answers so far, one for each
  // message of the batch; nullopt: none.
  std::vector<std::optional<Answer>> wait(std::size_t sent, std::chrono::milliseconds patience,
                                          const std::function<bool()>& gone);
  bool interrupted() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t first_ = 1;
  std::vector<std::optional<Answer>> answers_;
  std::size_t answered_ = 0;
  bool refused_ = false;
  bool interrupted_ = false;
};

}  // namespace fencepost::outbox
