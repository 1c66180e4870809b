// Listens to GET /api/v1/events over many connections, and measures how many events arrive and how old they are.
//
//   event_listener URL KEY CONNECTIONS EVENTS     EVENTS: how many each connection waits for
//
// Prints "ready" when every stream has begun. At the end: the summary of arrivals.hpp.
#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>

#include "http/client.hpp"
#include "http/sse_reader.hpp"

#include "bench/arrivals.hpp"

namespace {

using namespace fencepost;

struct Measured {
  std::size_t connections = 0, begun = 0, wanted = 0;
  bench::Arrivals arrivals;
};

awaitable<> listen(http::Client& client, std::string url, std::string key, Measured& measured) {
  std::size_t got = 0;
  bool begun = false;
  http::SseReader reader(
      [&](const http::SseReader::Message& message) {
        if (message.data.empty()) return;
        ++got;
        measured.arrivals.count(message.data);
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
  const auto expected = measured.connections * measured.wanted;
  fmt::print("{}\n", measured.arrivals.summary());
  return measured.arrivals.size() == expected ? 0 : 1;
}
