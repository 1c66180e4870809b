// The sink with a real nats-server, on a loop as in a node.
#include <atomic>
#include <chrono>
#include <future>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>

#include "outbox/nats/nats_sink.hpp"
#include "runtime/runtime_test_support.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/nats_server.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using test::NatsServer;

constexpr std::chrono::sys_days kDay = std::chrono::January / 1 / 2026;

NatsOptions options_at(const std::string& url) {
  NatsOptions options;
  options.urls.emplace_back(url);
  options.timeout = 1s;
  return options;
}

// Events 1 to n of ten transactions in turn.
LogEvents make_events(std::int64_t n) {
  LogEvents out;
  for (std::int64_t seq = 1; seq <= n; ++seq) {
    LogEvent event;
    event.seq = seq;
    event.type = seq % 2 == 0 ? "TxConfirmed" : "TxCreated";
    event.subject = fmt::format("tx/{}", seq % 10);
    event.at = kDay + std::chrono::milliseconds(seq);
    event.envelope = fmt::format(R"({{"id":"{}"}})", seq);
    out.push_back(std::move(event));
  }
  return out;
}

std::vector<const LogEvent*> slice(const LogEvents& events, std::size_t from, std::size_t count) {
  std::vector<const LogEvent*> out;
  for (auto i = from; i < std::min(events.size(), from + count); ++i) out.push_back(&events[i]);
  return out;
}

struct Fixture {
  explicit Fixture(const NatsOptions& options) : delivery(options, metrics) { runtime.start(); }
  ~Fixture() { runtime.stop(); }

  Metrics metrics;
  Runtime runtime{{.threads = 1, .cpu_threads = 1}};
  NatsDelivery delivery;
};

awaitable<> pause(std::chrono::milliseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

double value_of(const std::string& scrape, const std::string& name) {
  const auto at = scrape.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(scrape.substr(at + name.size() + 2));
}

// Delivers as a consumer does: the rest again after retry_after. Each `restart_every` batches it forgets how far it was
// since the last restart but one batch, and makes a new sink, as after a crash of the node. `done` is the position.
awaitable<> consume(Fixture& f, const LogEvents& events, std::uint32_t seed, int restart_every,
                    std::atomic<std::size_t>& done) {
  std::mt19937 random(seed);
  const auto home = co_await this_executor();
  auto sink = f.delivery.make_sink(home);
  std::size_t position = 0;
  std::size_t before = 0;
  for (int batches = 1; position < events.size(); ++batches) {
    const auto handed = co_await sink->deliver(slice(events, position, random() % sink->max_batch() + 1));
    before = position;
    position += handed.handled;
    done = position;
    if (handed.retry_after) co_await pause(*handed.retry_after);
    if (restart_every > 0 && batches % restart_every == 0 && position < events.size()) {
      sink = f.delivery.make_sink(home);
      position = before;
    }
  }
}

awaitable<> stop_delivery(Fixture& f) {
  co_await f.delivery.stop();
}

TEST(nats_sink, delivers_each_event_once_in_order) {
  const NatsServer server;
  Fixture f(options_at(server.url()));
  const auto events = make_events(5000);
  std::atomic<std::size_t> done{0};
  f.runtime.run_on(0, consume(f, events, 1, 0, done));
  const auto stored = server.messages("FENCEPOST");
  ASSERT_EQ(stored.size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(stored[i].body, events[i].envelope);
    ASSERT_EQ(stored[i].subject, "fencepost.tx." + events[i].type);
  }
  const auto scrape = f.metrics.scrape();
  EXPECT_EQ(value_of(scrape, "fencepost_nats_published_total"), 5000);
  EXPECT_EQ(value_of(scrape, "fencepost_nats_repeats_total"), 0);
  // Without its sink the node gives the connection up.
  EXPECT_TRUE(test::eventually([&] { return value_of(f.metrics.scrape(), "fencepost_nats_connected") == 0; }));
  f.runtime.run_on(0, stop_delivery(f));
}

TEST(nats_sink, loses_and_repeats_nothing_while_server_and_publisher_crash) {
  NatsServer server;
  Fixture f(options_at(server.url()));
  const auto events = make_events(40'000);
  std::atomic<std::size_t> done{0};
  auto consumed = asio::co_spawn(f.runtime.loop(0), consume(f, events, 7, 11, done), asio::use_future);
  for (const std::size_t point : {3'000U, 9'000U, 17'000U, 18'000U, 30'000U}) {
    EXPECT_TRUE(test::eventually([&] { return done >= point; }, 60s));
    server.kill();
    server.restart();
  }
  ASSERT_EQ(consumed.wait_for(60s), std::future_status::ready);
  consumed.get();
  const auto stored = server.messages("FENCEPOST");
  ASSERT_EQ(stored.size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i) ASSERT_EQ(stored[i].body, events[i].envelope) << i;
  EXPECT_GT(value_of(f.metrics.scrape(), "fencepost_nats_repeats_total"), 0);
  f.runtime.run_on(0, stop_delivery(f));
}

TEST(nats_sink, reports_what_it_waits_for_and_logs_it_once) {
  NatsServer server;
  server.add_stream("FENCEPOST", {"orders.>"});
  test::LogText log;
  Fixture f(options_at(server.url()));
  const auto events = make_events(3);
  f.runtime.run_on(0, [](Fixture& fixture, const LogEvents& offered) -> awaitable<> {
    const auto sink = fixture.delivery.make_sink(co_await this_executor());
    for (int i = 0; i < 3; ++i) {
      const auto handed = co_await sink->deliver(slice(offered, 0, 3));
      EXPECT_EQ(handed.handled, 0U);
      EXPECT_THAT(handed.error, testing::HasSubstr("do not cover fencepost.>"));
      EXPECT_TRUE(handed.retry_after.has_value());
      co_await pause(*handed.retry_after);
    }
  }(f, events));
  f.runtime.run_on(0, stop_delivery(f));
  const auto text = log.take();
  const auto first = text.find("events wait for NATS");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("events wait for NATS", first + 1), std::string::npos) << text;
  EXPECT_GE(value_of(f.metrics.scrape(), "fencepost_nats_failed_total{reason=\"stream\"}"), 3);
}

TEST(nats_sink, reports_a_stream_that_has_lost_what_it_acknowledged) {
  NatsServer server;
  test::LogText log;
  Fixture f(options_at(server.url()));
  const auto events = make_events(20);
  f.runtime.run_on(0, [](Fixture& fixture, NatsServer& nats, const LogEvents& offered) -> awaitable<> {
    const auto sink = fixture.delivery.make_sink(co_await this_executor());
    const auto first = co_await sink->deliver(slice(offered, 0, 10));
    EXPECT_EQ(first.handled, 10U);
    nats.delete_stream("FENCEPOST");
    nats.kill();
    nats.restart();
    std::size_t handled = 0;
    for (int i = 0; i < 100 && handled == 0; ++i) {
      const auto handed = co_await sink->deliver(slice(offered, 10, 10));
      handled = handed.handled;
      co_await pause(handed.retry_after.value_or(0ms));
    }
    EXPECT_EQ(handled, 10U);
  }(f, server, events));
  f.runtime.run_on(0, stop_delivery(f));
  EXPECT_THAT(log.take(), testing::HasSubstr("the stream lacks messages that it had acknowledged"));
  EXPECT_EQ(value_of(f.metrics.scrape(), "fencepost_nats_failed_total{reason=\"lost\"}"), 1);
}

TEST(nats_sink, connects_before_the_first_event_and_again_when_idle) {
  NatsServer server;
  Fixture f(options_at(server.url()));
  f.runtime.run_on(0, [](Fixture& fixture, NatsServer& nats) -> awaitable<> {
    const auto sink = fixture.delivery.make_sink(co_await this_executor());
    const auto connected = [&] { return value_of(fixture.metrics.scrape(), "fencepost_nats_connected"); };
    co_await sink->tend();
    EXPECT_EQ(connected(), 1);
    EXPECT_EQ(nats.subjects_of("FENCEPOST").size(), 1U);
    nats.kill();
    const auto tend_until = [&](double wanted) -> awaitable<bool> {
      const auto deadline = std::chrono::steady_clock::now() + 20s;
      while (connected() != wanted && std::chrono::steady_clock::now() < deadline) {
        const auto tended = co_await sink->tend();
        co_await pause(tended.again_after.value_or(1ms));
      }
      co_return connected() == wanted;
    };
    const bool noticed = co_await tend_until(0);
    EXPECT_TRUE(noticed);
    nats.restart();
    const bool back = co_await tend_until(1);
    EXPECT_TRUE(back);
  }(f, server));
  f.runtime.run_on(0, stop_delivery(f));
}

TEST(nats_sink, stops_at_once_while_the_server_is_silent) {
  NatsServer server;
  auto options = options_at(server.url());
  options.timeout = 60s;
  Fixture f(options);
  const auto events = make_events(100);
  f.runtime.run_on(0, [](Fixture& fixture, NatsServer& nats, const LogEvents& offered) -> awaitable<> {
    auto sink = fixture.delivery.make_sink(co_await this_executor());
    const auto first = co_await sink->deliver(slice(offered, 0, 50));
    EXPECT_EQ(first.handled, 50U);
    nats.suspend();
    asio::cancellation_signal cancel;
    std::atomic<bool> ended{false};
    asio::co_spawn(
        co_await asio::this_coro::executor, sink->deliver(slice(offered, 50, 50)),
        asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr, const Handed&) { ended = true; }));
    co_await pause(50ms);
    cancel.emit(asio::cancellation_type::all);
    const bool over = co_await test::comes_true([&] { return ended.load(); });
    EXPECT_TRUE(over);
    sink.reset();
    const auto begin = std::chrono::steady_clock::now();
    co_await fixture.delivery.stop();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  }(f, server, events));
  server.resume();
}

}  // namespace
}  // namespace fencepost::outbox
