// An event as a message of JetStream, and JetStream's answer to it. Pure: no I/O.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "outbox/feed/log_event.hpp"

namespace fencepost::outbox {

struct NatsMessage {
  std::int64_t seq = 0;  // of the event
  std::string subject;   // "fencepost.tx.TxConfirmed"
  std::string id;        // Nats-Msg-Id
  std::string body;      // the CloudEvents envelope
};

NatsMessage to_nats_message(const LogEvent& event, std::string_view prefix);

// "fencepost-<seq>-<time in µs>". The time keeps apart two events with the same seq: of two clusters, or of a log that
// was restored from a backup and continues with numbers that were used before. A gap has no time: it is reported with
// the time of the report, and a second report of the same gap is the same message.
std::string nats_message_id(const LogEvent& event);

// The seq in an id of the form above. nullopt: the id was not made by nats_message_id.
std::optional<std::int64_t> seq_in_message_id(std::string_view id);

// Whether every subject that matches `subject` also matches `pattern`. Both may end in ">" and contain "*".
bool subject_covers(std::string_view pattern, std::string_view subject);

struct NatsAck {
  std::uint64_t sequence = 0;  // in the stream
  bool duplicate = false;      // the stream had a message with this id already
};

struct NatsRefusal {
  std::int64_t code = 0;  // JetStream's err_code; 0: none
  std::string text;

  // The stream's last message is not the one that the publisher expected: another publisher wrote meanwhile, or the
  // message before this one was not stored.
  bool out_of_step() const;
};

// The answer to a published message: {"stream":…,"seq":…} or {"error":{…}}. Any other text is a refusal.
std::expected<NatsAck, NatsRefusal> parse_nats_ack(std::string_view text);

}  // namespace fencepost::outbox
