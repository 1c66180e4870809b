// Streams of events at their limits: readers that are slow, filters that match little, events that are gone.
#include <gmock/gmock.h>

#include "http/http_test_support.hpp"
#include "http/sse_reader.hpp"
#include "outbox/feed/feed_fixture_test_support.hpp"
#include "outbox/stream/event_stream_routes.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EveryoneMayRead final : public http::Authenticator {
 public:
  awaitable<Result<http::Principal>> authenticate(const http::Request&) override {
    co_return http::Principal{.id = "k", .label = "l", .scopes = {"tx:read"}, .restrictions = {}};
  }
};

class EventStreams : public testing::FeedFixture {
 protected:
  void serve(FeedOptions options = {}) {
    launch(options);
    add_stream_routes(router_, {*feed_, database_, everyone_, metrics_});
    server_.emplace(runtime_, http::ServerOptions{.host = "127.0.0.1", .port = 0}, router_, &everyone_, metrics_);
    const auto started =
        runtime_.run_on(0, [](http::Server& server) -> awaitable<Result<void>> { co_return server.start(); }(*server_));
    ASSERT_TRUE(started) << started.error().to_string();
  }
  ~EventStreams() override {
    if (server_) runtime_.run_on(0, server_->stop(5s));
    shut_down();
  }

  void ask(http::testing::RawClient& client, const std::string& query, const std::string& after) {
    client.send("GET /api/v1/events" + query + " HTTP/1.1\r\nHost: x\r\nLast-Event-ID: " + after + "\r\n\r\n");
  }

  EveryoneMayRead everyone_;
  http::Router router_;
  std::optional<http::Server> server_;
};

struct Read {
  std::vector<std::string> messages, comments;
};
Read read_messages(const std::string& body) {
  Read read;
  http::SseReader reader(
      [&](const http::SseReader::Message& m) { read.messages.push_back(m.id + (m.data.empty() ? "" : "+")); },
      [&](std::string_view comment) { read.comments.emplace_back(comment); });
  reader.feed(body);
  return read;
}

TEST_F(EventStreams, a_reader_that_is_too_slow_is_disconnected_with_a_comment_and_can_resume) {
  constexpr long long kEvents = 5'000;
  serve({.max_events = 100});
  http::testing::RawClient client(server_->port());
  ask(client, "", "0");
  client.read_until("retry:");  // at the end of the log now, and reads no more
  // More than the sockets' buffers hold.
  for (int i = 0; i < 50; ++i) {
    db_.exec(
        "INSERT INTO event (type, subject, data) SELECT 'TxConfirmed', 'tx/1', jsonb_build_object('signer', '0xa', "
        "'chainId', 1, 'pad', repeat('x', 6000)) FROM generate_series(1, 100)");
  }
  ASSERT_TRUE(test::eventually([&] { return metric("fencepost_outbox_events_read_total") >= kEvents; }));
  const auto read = read_messages(client.read_to_end());
  ASSERT_FALSE(read.comments.empty());
  EXPECT_THAT(read.comments.back(), HasSubstr("too slow"));
  EXPECT_EQ(metric("fencepost_event_streams_too_slow_total"), 1);
  ASSERT_FALSE(read.messages.empty());
  const auto last = std::stoll(read.messages.back());
  EXPECT_LT(last, kEvents);
  EXPECT_EQ(static_cast<long long>(read.messages.size()), last);  // none is missing before the end

  http::testing::RawClient again(server_->port());
  ask(again, "?follow=false", std::to_string(last));
  const auto rest = read_messages(again.read_to_end());
  ASSERT_FALSE(rest.messages.empty());
  EXPECT_EQ(rest.messages.front(), std::to_string(last + 1) + "+");
  EXPECT_EQ(static_cast<long long>(rest.messages.size()), kEvents - last);
}

TEST_F(EventStreams, a_client_whose_filter_matches_little_still_learns_its_position) {
  append(2'500);
  serve();
  http::testing::RawClient client(server_->port());
  ask(client, "?type=TxAccepted&follow=false", "0");
  const auto read = read_messages(client.read_to_end());
  EXPECT_THAT(read.messages, ElementsAre("1000", "2000"));
}

TEST_F(EventStreams, a_client_that_fell_behind_the_retention_is_told) {
  append(3);
  db_.exec("ALTER TABLE event DISABLE TRIGGER event_is_append_only; DELETE FROM event");
  append(2);
  serve();
  http::testing::RawClient client(server_->port());
  ask(client, "?type=TxConfirmed&follow=false", "1");
  const auto body = client.read_to_end();
  EXPECT_THAT(body, HasSubstr(R"("type":"EventsGap")"));
  EXPECT_THAT(body, HasSubstr(R"("data":{"gap":true,"from":"2","to":"3"})"));
  EXPECT_THAT(read_messages(body).messages, ElementsAre("3+", "4+", "5+"));
}

TEST_F(EventStreams, the_head_of_the_answer_comes_at_once) {
  serve();
  http::testing::RawClient client(server_->port());
  client.send("GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("text/event-stream"));
  append(1);
  EXPECT_THAT(client.read_until("\n\n"), HasSubstr("retry: 1000"));
  EXPECT_THAT(client.read_until("\n\n"), HasSubstr("id: 1\ndata: {\"specversion\":\"1.0\""));
}

}  // namespace
}  // namespace fencepost::outbox
