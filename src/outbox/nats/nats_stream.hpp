// The stream that the events go to: created if it is missing, checked if it exists, never changed.
#pragma once

#include <cstdint>
#include <string>

#include "outbox/nats/nats_handles.hpp"
#include "outbox/nats/nats_options.hpp"

namespace fencepost::outbox {

inline constexpr std::chrono::minutes kNatsDuplicateWindow{2};

struct NatsStreamState {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t last_sequence = 0;
};

enum class IfMissing { kCreate, kReport };

// Blocks for at most two requests. The failure is kStream when the stream does not fit or cannot be created, kNoStream
// when it is missing and IfMissing is kReport, kUnreachable when the server does not answer.
NatsResult<NatsStreamState> find_nats_stream(jsCtx& jetstream, const NatsOptions& options, IfMissing if_missing);

// The Nats-Msg-Id of the message with that sequence; empty when the message has none, or was deleted. Blocks.
NatsResult<std::string> nats_message_id_at(jsCtx& jetstream, const NatsOptions& options, std::uint64_t sequence);

}  // namespace fencepost::outbox
