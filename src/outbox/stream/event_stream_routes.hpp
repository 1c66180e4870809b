// GET /api/v1/events: the events of the log as server-sent events, live and from any position that the log still has.
//
// A stream has no state in the database: its position is the `id` of the last event that the client has received, which
// the client sends as `Last-Event-ID` when it reconnects, to any node.
#pragma once

#include <chrono>
#include <memory>

#include "http/router.hpp"
#include "outbox/feed/event_feed.hpp"
#include "outbox/stream/wallet_streams.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::outbox {

struct StreamOptions {
  // How often the caller of an open stream is checked again.
  std::chrono::milliseconds recheck{10'000};
};

struct StreamParts {
  EventFeed& feed;
  pg::Database& database;
  http::Authenticator& authenticator;
  Metrics& metrics;
  StreamOptions options = {};
  std::shared_ptr<WalletStreams> wallets = std::make_shared<WalletStreams>();
};

void add_stream_routes(http::Router& router, const StreamParts& parts);

}  // namespace fencepost::outbox
