// Owners of libnats's objects, and its failures.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include <nats/nats.h>

namespace fencepost::outbox {

enum class NatsFailure {
  kUnreachable,  // no server accepts the connection, or the connection was lost
  kNoStream,     // the stream is missing, and was not to be created
  kStream,       // the stream cannot be created, or does not fit
  kRefused,      // the server refused a message
  kTimeout,      // the server did not acknowledge a message in time
  kLost,         // the stream lacks messages that it had acknowledged
};

std::string_view to_string(NatsFailure failure);

struct NatsProblem {
  NatsFailure kind = NatsFailure::kUnreachable;
  std::string text;  // one sentence; never a credential

  friend bool operator==(const NatsProblem&, const NatsProblem&) = default;
};

template <class T>
using NatsResult = std::expected<T, NatsProblem>;

namespace nats {

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
using Options = std::unique_ptr<natsOptions, Destroyer<natsOptions_Destroy>>;
using Connection = std::unique_ptr<natsConnection, Destroyer<natsConnection_Destroy>>;
using Subscription = std::unique_ptr<natsSubscription, Destroyer<natsSubscription_Destroy>>;
using JetStream = std::unique_ptr<jsCtx, Destroyer<jsCtx_Destroy>>;
using StreamInfo = std::unique_ptr<jsStreamInfo, Destroyer<jsStreamInfo_Destroy>>;
using Message = std::unique_ptr<natsMsg, Destroyer<natsMsg_Destroy>>;

// libnats's text for a status that the last call of this thread returned.
std::string reason_of(natsStatus status);

}  // namespace nats
}  // namespace fencepost::outbox
