// Listens to GET /api/v1/events over many connections, and measures how many events arrive and how old they are.
//
//   event_listener URL KEY CONNECTIONS EVENTS     EVENTS: how many each connection waits for
//
// Prints "ready" when every stream has begun. At the end: "events N seconds S p50 MICROS p99 MICROS", the seconds from
// the first event to the last. The age of an event is the time from its row's insert (the envelope's `time`).
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>

#include "http/client.hpp"
#include "http/sse_reader.hpp"

namespace {

using namespace fencepost;
using std::chrono::steady_clock;

struct Measured {
  std::size_t connections = 0, begun = 0, wanted = 0, events = 0;
  std::vector<std::int64_t> ages_us;
  steady_clock::time_point first, last;
};

// "…"time":"2026-11-15T19:45:18.123456Z"…", in microseconds since 1970; 0: none.
std::int64_t time_of(std::string_view envelope) {
  const auto at = envelope.find(R"("time":")");
  if (at == std::string_view::npos) return 0;
  const std::string text(envelope.substr(at + 8, 26));
  std::tm parts{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return 0;
  std::int64_t micros = 0;
  std::from_chars(text.data() + 20, text.data() + 26, micros);
  return static_cast<std::int64_t>(::timegm(&parts)) * 1'000'000 + micros;
}

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

awaitable<> listen(http::Client& client, std::string url, std::string key, Measured& measured) {
  std::size_t got = 0;
  bool begun = false;
  http::SseReader reader(
      [&](const http::SseReader::Message& message) {
        if (message.data.empty()) return;
        ++got;
        const auto now = steady_clock::now();
        if (measured.events++ == 0) measured.first = now;
        measured.last = now;
        measured.ages_us.push_back(now_us() - time_of(message.data));
      },
      [](std::string_view) {});
  http::ClientRequest request;
  request.url = std::move(url);
  request.headers = {{"Authorization", "Bearer " + key}};
  request.timeout = std::chrono::minutes(2);
  request.on_body = [&](std::string_view piece) {
    if (!begun) {
      begun = true;
      if (++measured.begun == measured.connections) {
        fmt::print("ready\n");
        std::fflush(stdout);
      }
    }
    return reader.feed(piece) && got < measured.wanted;
  };
  const auto ended = co_await client.send(std::move(request));
  if (!ended) fmt::print(stderr, "event_listener: {}\n", ended.error().to_string());
}

std::int64_t percentile(const std::vector<std::int64_t>& sorted, double share) {
  return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: event_listener URL KEY CONNECTIONS EVENTS\n");
    return 2;
  }
  Measured measured;
  measured.connections = std::stoul(argv[3]);
  measured.wanted = std::stoul(argv[4]);
  asio::io_context context(1);
  http::Client client(context.get_executor(), {.max_connections_per_origin = measured.connections});
  for (std::size_t i = 0; i < measured.connections; ++i) {
    asio::co_spawn(context, listen(client, argv[1], argv[2], measured), [](const std::exception_ptr& failure) {
      if (failure) std::rethrow_exception(failure);
    });
  }
  context.run();
  std::ranges::sort(measured.ages_us);
  fmt::print("events {} seconds {:.3f} p50 {} p99 {}\n", measured.events,
             std::chrono::duration<double>(measured.last - measured.first).count(), percentile(measured.ages_us, 0.5),
             percentile(measured.ages_us, 0.99));
  return measured.events == measured.connections * measured.wanted ? 0 : 1;
}
