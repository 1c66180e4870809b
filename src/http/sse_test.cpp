#include "http/sse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/http_test_support.hpp"

namespace fencepost::http {
namespace {

using namespace testing;
using std::chrono::milliseconds;

constexpr std::string_view kSubscribe = "GET /events HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(sse, events_are_framed_line_by_line) {
  EXPECT_EQ(format_event("7", "tx", "{}"), "id: 7\nevent: tx\ndata: {}\n\n");
  EXPECT_EQ(format_event("", "", ""), "data: \n\n");
  EXPECT_EQ(format_event("", "", "a\nb\r\nc\rd\n"), "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
}

TEST(sse, ids_and_names_cannot_break_the_frame) {
  EXPECT_THROW(format_event("1\ndata: x", "", ""), Exception);
  EXPECT_THROW(format_event("", "a\rb", ""), Exception);
  EXPECT_THROW(format_event(std::string_view("a\0b", 3), "", ""), Exception);
}

// Serves /events with `follow`, and counts how many streams have ended and how.
class Events {
 public:
  using Follow = std::function<awaitable<>(EventStream&)>;
  explicit Events(Follow follow) : follow_(std::move(follow)) {}

  void add_to(Router& router) {
    router.add({Verb::kGet, "/events", Access::open(), [this](Request&) -> awaitable<Response> {
                  co_return Response::events([this](EventStream& stream) { return run(stream); });
                }});
  }
  std::atomic<int> started{0};
  std::atomic<int> ended{0};

 private:
  awaitable<> run(EventStream& stream) {
    struct Count {
      std::atomic<int>& ended;
      ~Count() { ++ended; }
    } count{ended};
    ++started;
    co_await follow_(stream);
  }
  Follow follow_;
};

awaitable<> silence(EventStream&) {
  asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await never.async_wait(asio::use_awaitable);
}

awaitable<> flood(EventStream& stream) {
  const std::string large(64 * 1024, 'x');
  while (co_await stream.send("", "", large)) {
  }
}

awaitable<> three_events(EventStream& stream) {
  co_await stream.retry(milliseconds(1500));
  for (int i = 1; i <= 3; ++i) {
    const auto id = std::to_string(i);
    if (!co_await stream.send(id, "tick", "n=" + id)) co_return;
  }
}

awaitable<> tell_where(EventStream& stream) {
  co_await stream.send("", "", stream.last_event_id().value_or("none"));
}

awaitable<> fails(EventStream& stream) {
  co_await stream.send("", "", "one");
  throw std::runtime_error("the source broke");
}

TEST(sse, a_stream_has_its_events_and_then_ends) {
  Events events(three_events);
  TestServer server([&](Router& router) { events.add_to(router); });
  RawClient client(server.port());
  client.send(kSubscribe);
  const auto reply = client.read_reply();
  EXPECT_EQ(reply.status, 200U);
  EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(reply.headers.at("cache-control"), "no-store");
  EXPECT_FALSE(reply.headers.contains("content-length"));
  EXPECT_EQ(client.read_to_end(),
            "retry: 1500\n\n"
            "id: 1\nevent: tick\ndata: n=1\n\n"
            "id: 2\nevent: tick\ndata: n=2\n\n"
            "id: 3\nevent: tick\ndata: n=3\n\n");
}

TEST(sse, the_last_event_id_comes_from_the_header_or_the_query) {
  Events events(tell_where);
  TestServer server([&](Router& router) { events.add_to(router); });
  struct Case {
    std::string_view target, header, expected;
  };
  for (const auto& [target, header, expected] : {Case{"/events", "", "none"},
                                                 {"/events", "Last-Event-ID: 42\r\n", "42"},
                                                 {"/events?lastEventId=a%20b", "", "a b"},
                                                 {"/events?lastEventId=1", "Last-Event-ID: 2\r\n", "2"}}) {
    RawClient client(server.port());
    client.send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n", target, header));
    client.read_reply();
    EXPECT_EQ(client.read_to_end(), fmt::format("data: {}\n\n", expected));
  }
}

TEST(sse, heartbeats_are_sent_between_events) {
  ServerOptions options;
  options.heartbeat = milliseconds(20);
  Events events(silence);
  TestServer server([&](Router& router) { events.add_to(router); }, options);
  RawClient client(server.port());
  client.send(kSubscribe);
  client.read_reply();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.read_until("\n\n"), ": keep-alive\n\n");
}

TEST(sse, a_disconnect_between_events_ends_the_stream) {
  Events events(silence);
  TestServer server([&](Router& router) { events.add_to(router); });
  {
    RawClient client(server.port());
    client.send(kSubscribe);
    client.read_reply();
    ASSERT_TRUE(eventually([&] { return events.started == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return events.ended == 1 && server.server().connections() == 0; }));
}

TEST(sse, a_client_that_does_not_read_is_dropped) {
  ServerOptions options;
  options.write_timeout = milliseconds(100);
  Events events(flood);
  TestServer server([&](Router& router) { events.add_to(router); }, options);
  RawClient client(server.port());
  client.keep_little();
  client.send(kSubscribe);
  EXPECT_TRUE(eventually([&] { return events.ended == 1 && server.server().connections() == 0; }));
}

TEST(sse, stop_ends_streams_at_once) {
  Events quiet(silence);
  TestServer server([&](Router& router) { quiet.add_to(router); });
  RawClient client(server.port());
  client.send(kSubscribe);
  client.read_reply();
  ASSERT_TRUE(eventually([&] { return quiet.started == 1; }));
  const auto before = std::chrono::steady_clock::now();
  server.stop(std::chrono::seconds(60));
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience);
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_EQ(quiet.ended, 1);
}

TEST(sse, stop_ends_a_stream_that_never_pauses) {
  Events busy(flood);
  TestServer server([&](Router& router) { busy.add_to(router); });
  RawClient client(server.port());
  client.send(kSubscribe);
  client.read_reply();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    client.read_to_end();
    done = true;
  });
  server.stop(std::chrono::seconds(60));
  EXPECT_EQ(busy.ended, 1);
  reader.join();
}

TEST(sse, a_stream_that_fails_ends) {
  Events events(fails);
  TestServer server([&](Router& router) { events.add_to(router); });
  RawClient client(server.port());
  client.send(kSubscribe);
  client.read_reply();
  EXPECT_EQ(client.read_to_end(), "data: one\n\n");
}

TEST(sse, head_has_no_stream) {
  Events events(silence);
  TestServer server([&](Router& router) { events.add_to(router); });
  const auto reply = fetch(server.port(), "HEAD /events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(events.started, 0);
}

}  // namespace
}  // namespace fencepost::http
