// Receives webhooks, and measures how many events arrive and how old they are.
//
//   webhook_receiver EVENTS     ends after so many different events
//
// Prints "ready PORT" when it listens; the path is /hook. At the end: the summary of arrivals.hpp, "repeats R requests
// Q".
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_set>

#include <fmt/format.h>

#include "http/router.hpp"
#include "http/server.hpp"
#include "runtime/completion.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"

#include "bench/arrivals.hpp"

namespace {

using namespace fencepost;

struct Received {
  std::size_t wanted = 0, requests = 0, repeats = 0;
  std::unordered_set<std::string> ids;
  bench::Arrivals arrivals;
};

awaitable<> receive(Runtime& runtime, Received& received) {
  const auto done = std::make_shared<Completion<bool>>(runtime.executor(0));
  Metrics metrics;
  http::Router router;
  router.add(
      {http::Verb::kPost, "/hook", http::Access::open(), [&](http::Request& request) -> awaitable<http::Response> {
         ++received.requests;
         received.arrivals.count(request.body(), [&](std::string_view id) {
           const bool fresh = received.ids.emplace(id).second;
           if (!fresh) ++received.repeats;
           return fresh;
         });
         if (received.arrivals.size() >= received.wanted) done->complete(true);
         co_return http::Response::no_content();
       }});
  http::Server server(runtime, {.host = "127.0.0.1", .port = 0}, router, nullptr, metrics);
  if (auto started = server.start(); !started) throw Exception(started.error());
  fmt::print("ready {}\n", server.port());
  std::fflush(stdout);
  co_await done->wait();
  co_await server.stop(std::chrono::seconds(1));
}

}  // namespace

int main(int argc, char** argv) {
  Received received;
  received.wanted = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (received.wanted == 0) {
    fmt::print(stderr, "usage: webhook_receiver EVENTS\n");
    return 2;
  }
  Runtime runtime({.threads = 1});
  runtime.start();
  runtime.run_on(0, receive(runtime, received));
  runtime.stop();
  fmt::print("{} repeats {} requests {}\n", received.arrivals.summary(), received.repeats, received.requests);
  return 0;
}
