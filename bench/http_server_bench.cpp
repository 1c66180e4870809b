// The server that bench/http.sh measures: GET /small answers a small JSON document through the real server and router.
//
//   http_bench_server [port]     Default: any free port. Prints "port N" and serves until SIGINT or SIGTERM.
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include <boost/asio/signal_set.hpp>

#include "http/server.hpp"
#include "runtime/log.hpp"

namespace {

using namespace fencepost;

awaitable<http::Response> small(http::Request&) {
  boost::json::object document{{"txId", "0197a3c4-6d1e-7b62-9f3e-2f1d5a7c9b10"},
                               {"state", "SUBMITTED"},
                               {"chainId", 31337},
                               {"nonce", 42},
                               {"confirmations", 0}};
  co_return http::Response::json(200, document);
}

awaitable<> wait_for_signal() {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
  co_await signals.async_wait(use_tuple);
}

}  // namespace

int main(int argc, char** argv) {
  http::ServerOptions options;
  if (argc > 1) {
    const std::string_view text = argv[1];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), options.port);
    if (error != std::errc{} || end != text.data() + text.size()) {
      fmt::print(stderr, "usage: http_bench_server [port]\n");
      return 2;
    }
  }
  Runtime runtime({});
  Metrics metrics;
  http::Router router;
  router.add({http::Verb::kGet, "/small", http::Access::open(), small});
  http::Server server(runtime, options, router, nullptr, metrics);
  if (const auto started = server.start(); !started) {
    fmt::print(stderr, "{}\n", started.error().to_string());
    return 1;
  }
  fmt::print("port {}\n", server.port());
  std::fflush(stdout);
  runtime.start();
  run_blocking(wait_for_signal());
  runtime.run_on(0, server.stop(std::chrono::seconds(1)));
  runtime.stop();
  return 0;
}
