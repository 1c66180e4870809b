#include "outbox/nats/nats_stream.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "outbox/nats/nats_message.hpp"
#include "runtime/log.hpp"

namespace fencepost::outbox {
namespace {

constexpr int kNotFound = JSStreamNotFoundErr;

NatsProblem stream_problem(const NatsOptions& options, std::string_view what) {
  return {NatsFailure::kStream, fmt::format("stream {}: {}", options.stream, what)};
}

// A JetStream error is about the stream; anything else is about the way to the server.
NatsProblem request_problem(const NatsOptions& options, natsStatus status, jsErrCode code) {
  if (code != 0) return stream_problem(options, fmt::format("{} (JetStream error {})", nats::reason_of(status), +code));
  if (status == NATS_NO_RESPONDERS) {
    return stream_problem(options, "JetStream is not enabled on the server, or not for this account");
  }
  return {NatsFailure::kUnreachable, fmt::format("JetStream does not answer: {}", nats::reason_of(status))};
}

// Why this stream cannot take the events; nullopt: it can.
std::optional<std::string> misfit(const jsStreamConfig& stream, const std::string& needed) {
  const std::span<const char*> subjects(stream.Subjects, static_cast<std::size_t>(stream.SubjectsLen));
  if (std::ranges::none_of(subjects, [&](const char* subject) { return subject_covers(subject, needed); })) {
    return fmt::format(
        "exists with the subjects [{}], which do not cover {}; change the stream's subjects, or "
        "nats.stream or nats.subject_prefix",
        fmt::join(subjects, ", "), needed);
  }
  if (stream.NoAck) return "exists with no_ack: it would acknowledge nothing; turn no_ack off";
  if (stream.Sealed) return "exists and is sealed: it takes no messages; set nats.stream to another name";
  return std::nullopt;
}

NatsStreamState state_of(const jsStreamInfo& info) {
  return {.messages = info.State.Msgs, .bytes = info.State.Bytes, .last_sequence = info.State.LastSeq};
}

NatsResult<NatsStreamState> create_stream(jsCtx& jetstream, const NatsOptions& options, const std::string& subject) {
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  std::array<const char*, 1> subjects{subject.c_str()};
  config.Name = options.stream.c_str();
  config.Description = "Events of Fencepost";
  config.Subjects = subjects.data();
  config.SubjectsLen = 1;
  config.Storage = js_FileStorage;
  config.Retention = js_LimitsPolicy;
  config.Discard = js_DiscardOld;
  config.Replicas = options.replicas;
  using std::chrono::nanoseconds;
  config.MaxAge = nanoseconds(options.max_age).count();
  // The server refuses a window that is longer than the messages live.
  const auto window = nanoseconds(kNatsDuplicateWindow).count();
  config.Duplicates = config.MaxAge == 0 ? window : std::min(window, config.MaxAge);

  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  const auto status = js_AddStream(&raw, &jetstream, &config, nullptr, &code);
  const nats::StreamInfo info(raw);
  if (status != NATS_OK) return std::unexpected(request_problem(options, status, code));
  log::info("created the stream", {{"stream", options.stream}, {"subjects", subject}, {"replicas", options.replicas}});
  return state_of(*info);
}

}  // namespace

NatsResult<NatsStreamState> find_nats_stream(jsCtx& jetstream, const NatsOptions& options, IfMissing if_missing) {
  const auto needed = options.subject_prefix + ".>";
  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  const auto status = js_GetStreamInfo(&raw, &jetstream, options.stream.c_str(), nullptr, &code);
  const nats::StreamInfo info(raw);
  if (status == NATS_NOT_FOUND || static_cast<int>(code) == kNotFound) {
    if (if_missing == IfMissing::kCreate) return create_stream(jetstream, options, needed);
    return std::unexpected(
        NatsProblem{NatsFailure::kNoStream, fmt::format("stream {} does not exist", options.stream)});
  }
  if (status != NATS_OK) return std::unexpected(request_problem(options, status, code));
  if (const auto why = misfit(*info->Config, needed)) return std::unexpected(stream_problem(options, *why));
  return state_of(*info);
}

NatsResult<std::string> nats_message_id_at(jsCtx& jetstream, const NatsOptions& options, std::uint64_t sequence) {
  natsMsg* raw = nullptr;
  jsErrCode code{};
  const auto status = js_GetMsg(&raw, &jetstream, options.stream.c_str(), sequence, nullptr, &code);
  const nats::Message message(raw);
  if (status == NATS_NOT_FOUND) return std::string();
  if (status != NATS_OK) return std::unexpected(request_problem(options, status, code));
  const char* id = nullptr;
  if (natsMsgHeader_Get(message.get(), "Nats-Msg-Id", &id) != NATS_OK || id == nullptr) return std::string();
  return std::string(id);
}

}  // namespace fencepost::outbox
