#include "doctor/nats.hpp"

#include <utility>

#include <fmt/format.h>

namespace fencepost::doctor {
namespace {

constexpr auto kNatsCheck = "nats";

std::string nats_fix(outbox::NatsFailure failure) {
  switch (failure) {
    case outbox::NatsFailure::kUnreachable:
      return "check that a server of nats.url is running, and the credentials; events wait in the log meanwhile";
    case outbox::NatsFailure::kNoStream:
      return "start a node: the node that publishes creates the stream";
    case outbox::NatsFailure::kStream:
      return "Fencepost never changes an existing stream; events wait in the log until the stream takes them";
    case outbox::NatsFailure::kRefused:
    case outbox::NatsFailure::kTimeout:
    case outbox::NatsFailure::kLost:
      return "";
  }
  std::unreachable();
}

}  // namespace

Finding assess_nats(const outbox::NatsOptions& options, const outbox::NatsResult<outbox::NatsStreamState>& stream) {
  if (stream) {
    return passed(kNatsCheck, fmt::format("stream {} takes {}.>, {} messages, {} bytes", options.stream,
                                          options.subject_prefix, stream->messages, stream->bytes));
  }
  const auto& problem = stream.error();
  const auto row = problem.kind == outbox::NatsFailure::kNoStream ? warned : failed;
  return row(kNatsCheck, one_line(problem.text), nats_fix(problem.kind));
}

Finding check_nats(const outbox::NatsOptions& options) {
  if (!options.configured()) return passed(kNatsCheck, "not configured: events go to no broker");
  const auto session =
      outbox::NatsSession::open(options, std::make_shared<outbox::NatsAcks>(), outbox::IfMissing::kReport);
  if (!session) return assess_nats(options, std::unexpected(session.error()));
  return assess_nats(options, (*session)->stream());
}

}  // namespace fencepost::doctor
