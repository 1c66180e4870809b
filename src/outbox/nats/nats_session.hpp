// One connection to NATS, and the messages that are published over it, in order.
//
// Order and repeats. Each message names its predecessor: the first of a batch the stream's last sequence, the others
// the id of the message before (Nats-Expected-Last-Sequence, Nats-Expected-Last-Msg-Id). The server stores a message
// only right after its predecessor. So when a message is lost or refused, all after it are refused, and the stream
// never has a message without those before it. A new session looks at the end of the stream for messages of the batch
// that were stored without an acknowledgement, however long ago; these are not published again.
//
// libnats does not reconnect: it would send messages from its buffer after others were lost. A lost connection ends the
// session; the owner opens another.
//
// All methods block and belong to one thread, except interrupt().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "outbox/nats/nats_acks.hpp"
#include "outbox/nats/nats_handles.hpp"
#include "outbox/nats/nats_message.hpp"
#include "outbox/nats/nats_options.hpp"
#include "outbox/nats/nats_stream.hpp"

namespace fencepost::outbox {

inline constexpr std::size_t kNatsMaxBatch = 1000;  // messages without an acknowledgement

struct NatsPublished {
  std::size_t stored = 0;              // messages at the front that the stream has
  std::size_t repeats = 0;             // of these, how many it had before
  std::optional<NatsProblem> problem;  // why the rest is not stored
  bool again = false;                  // another publisher wrote meanwhile: publish the rest now
};

class NatsSession {
 public:
  // Connects to one of the servers, and creates or checks the stream. Takes at most `timeout` for each server.
  static NatsResult<std::unique_ptr<NatsSession>> open(const NatsOptions& options, std::shared_ptr<NatsAcks> acks,
                                                       IfMissing if_missing = IfMissing::kCreate);
  ~NatsSession();
  NatsSession(const NatsSession&) = delete;
  NatsSession& operator=(const NatsSession&) = delete;

  // Publishes the messages, at most kNatsMaxBatch, and waits for the acknowledgements.
  NatsPublished publish(std::span<const NatsMessage> messages);

  // False once the connection is lost, or a message was not answered: open another session.
  bool usable() const;
  const NatsStreamState& stream() const { return stream_; }

 private:
  NatsSession(NatsOptions options, nats::Connection connection, std::shared_ptr<NatsAcks> acks);

  NatsResult<void> listen_for_acks();
  NatsResult<std::size_t> find_stored(std::span<const NatsMessage> messages);
  NatsResult<void> send(const NatsMessage& message, const NatsMessage* before, std::uint64_t ticket);
  NatsPublished publish_new(std::span<const NatsMessage> messages);
  NatsPublished count(const std::vector<std::optional<NatsAcks::Answer>>& answers, std::optional<NatsProblem> unsent);

  const NatsOptions options_;
  nats::Connection connection_;
  nats::JetStream jetstream_;
  nats::Subscription answers_;
  std::shared_ptr<NatsAcks> acks_;
  std::string inbox_;
  NatsStreamState stream_;
  bool in_step_ = false;  // stream_.last_sequence is of a message of ours, and nothing is in flight
  bool broken_ = false;
};

}  // namespace fencepost::outbox
