// Receives the events of a JetStream stream, and measures how many arrive and how old they are.
//
//   nats_receiver URL SUBJECT EVENTS     ends after so many events
//
// Prints "ready" when it is subscribed. At the end: the summary of arrivals.hpp.
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "outbox/nats/nats_handles.hpp"

#include "bench/arrivals.hpp"

namespace {

using namespace fencepost;

constexpr std::int64_t kPatienceMs = 60'000;

void check(natsStatus status, const char* what) {
  if (status == NATS_OK) return;
  fmt::print(stderr, "nats_receiver: {}: {}\n", what, natsStatus_GetText(status));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: nats_receiver URL SUBJECT EVENTS\n");
    return 2;
  }
  const auto wanted = std::strtoull(argv[3], nullptr, 10);
  natsConnection* connected = nullptr;
  check(natsConnection_ConnectTo(&connected, argv[1]), "connect");
  const outbox::nats::Connection connection(connected);
  jsCtx* context = nullptr;
  check(natsConnection_JetStream(&context, connected, nullptr), "JetStream");
  const outbox::nats::JetStream stream(context);
  jsSubOptions options;
  jsSubOptions_Init(&options);
  options.Ordered = true;
  options.Config.DeliverPolicy = js_DeliverNew;
  natsSubscription* subscribed = nullptr;
  check(js_SubscribeSync(&subscribed, context, argv[2], nullptr, &options, nullptr), "subscribe");
  const outbox::nats::Subscription subscription(subscribed);
  fmt::print("ready\n");
  std::fflush(stdout);
  bench::Arrivals arrivals;
  while (arrivals.size() < wanted) {
    natsMsg* next = nullptr;
    check(natsSubscription_NextMsg(&next, subscribed, kPatienceMs), "next message");
    const outbox::nats::Message message(next);
    arrivals.count({natsMsg_GetData(next), static_cast<std::size_t>(natsMsg_GetDataLength(next))});
  }
  fmt::print("{}\n", arrivals.summary());
  return 0;
}
