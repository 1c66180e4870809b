// Receives webhooks, and measures how many events arrive and how old they are.
//
//   webhook_receiver EVENTS     ends after so many different events
//
// Prints "ready PORT" when it listens; the path is /hook. At the end: "events N seconds S p50 MICROS p99 MICROS repeats
// R requests Q", the seconds from the first event to the last. The age of an event is the time from its row's insert
// (the envelope's `time`).
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "http/router.hpp"
#include "http/server.hpp"
#include "runtime/completion.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"

namespace {

using namespace fencepost;
using std::chrono::steady_clock;

struct Arrivals {
  std::size_t wanted = 0, requests = 0, repeats = 0;
  std::unordered_set<std::string> ids;
  std::vector<std::int64_t> ages_us;
  steady_clock::time_point first, last;
  std::shared_ptr<Completion<bool>> done;
};

// "2026-11-15T19:45:18.123456Z" in microseconds since 1970.
std::int64_t micros_of(const std::string& text) {
  std::tm parts{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return 0;
  std::int64_t micros = 0;
  std::from_chars(text.data() + 20, text.data() + 26, micros);
  return static_cast<std::int64_t>(::timegm(&parts)) * 1'000'000 + micros;
}

// Members of the envelope come in one order, so each "id" is followed by its "time".
void count(std::string_view body, Arrivals& arrivals) {
  constexpr std::string_view kId = R"("specversion":"1.0","id":")";
  constexpr std::string_view kTime = R"("time":")";
  const auto now = steady_clock::now();
  const auto now_us =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  for (auto at = body.find(kId); at != std::string_view::npos; at = body.find(kId, at)) {
    at += kId.size();
    std::string id(body.substr(at, body.find('"', at) - at));
    const auto time = body.find(kTime, at);
    if (time == std::string_view::npos) break;
    if (!arrivals.ids.insert(std::move(id)).second) {
      ++arrivals.repeats;
      continue;
    }
    if (arrivals.ages_us.empty()) arrivals.first = now;
    arrivals.last = now;
    arrivals.ages_us.push_back(now_us - micros_of(std::string(body.substr(time + kTime.size(), 26))));
  }
  if (arrivals.ages_us.size() >= arrivals.wanted) arrivals.done->complete(true);
}

awaitable<> receive(Runtime& runtime, Arrivals& arrivals) {
  arrivals.done = std::make_shared<Completion<bool>>(runtime.executor(0));
  Metrics metrics;
  http::Router router;
  router.add(
      {http::Verb::kPost, "/hook", http::Access::open(), [&](http::Request& request) -> awaitable<http::Response> {
         ++arrivals.requests;
         count(request.body(), arrivals);
         co_return http::Response::no_content();
       }});
  http::Server server(runtime, {.host = "127.0.0.1", .port = 0}, router, nullptr, metrics);
  if (auto started = server.start(); !started) throw Exception(started.error());
  fmt::print("ready {}\n", server.port());
  std::fflush(stdout);
  co_await arrivals.done->wait();
  co_await server.stop(std::chrono::seconds(1));
}

}  // namespace

int main(int argc, char** argv) {
  Arrivals arrivals;
  arrivals.wanted = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (arrivals.wanted == 0) {
    fmt::print(stderr, "usage: webhook_receiver EVENTS\n");
    return 2;
  }
  Runtime runtime({.threads = 1});
  runtime.start();
  runtime.run_on(0, receive(runtime, arrivals));
  runtime.stop();
  auto& ages = arrivals.ages_us;
  std::ranges::sort(ages);
  const auto at = [&](double share) {
    return ages[static_cast<std::size_t>(share * static_cast<double>(ages.size() - 1))];
  };
  fmt::print("events {} seconds {:.3f} p50 {} p99 {} repeats {} requests {}\n", ages.size(),
             std::chrono::duration<double>(arrivals.last - arrivals.first).count(), at(0.5), at(0.99), arrivals.repeats,
             arrivals.requests);
  return 0;
}
