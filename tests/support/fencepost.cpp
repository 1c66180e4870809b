#include "tests/support/fencepost.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/json/parse.hpp>

#include "base/random.hpp"
#include "base/text.hpp"
#include "http/client.hpp"
#include "runtime/read_file.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), fencepost_program());
  return arguments;
}

ChildProcess start(std::vector<std::string> arguments, const std::filesystem::path& output,
                   const std::vector<std::string>& env, const std::filesystem::path& cwd) {
  auto child = ChildProcess::start({.argv = command(std::move(arguments)),
                                    .env = environment_with(env),
                                    .cwd = cwd,
                                    .out = Output::file(output),
                                    .err = Output::same_as_out(),
                                    .death_signal = SIGKILL});
  if (!child) throw Exception(child.error());
  return std::move(*child);
}

awaitable<Answer> send(const Ask& request) {
  const auto executor = co_await this_executor();
  http::Client client(executor, {.connect_timeout = 2s, .total_timeout = 10s});
  http::ClientRequest message{
      .method = request.method, .url = request.url, .headers = request.headers, .body = request.body};
  if (!request.key.empty()) message.headers.emplace_back("Authorization", "Bearer " + request.key);
  if (!request.body.empty()) message.headers.emplace_back("Content-Type", "application/json");
  auto response = co_await client.send(std::move(message));
  if (!response) co_return Answer{0, response.error().to_string(), {}};
  co_return Answer{response->status, std::move(response->body), std::move(response->headers)};
}

}  // namespace

Finished fencepost(std::vector<std::string> arguments, const std::vector<std::string>& env) {
  return run_command(command(std::move(arguments)), env);
}

RunningFencepost::RunningFencepost(std::vector<std::string> arguments, std::filesystem::path output,
                                   const std::vector<std::string>& env, const std::filesystem::path& cwd)
    : output_(std::move(output)), child_(start(std::move(arguments), output_, env, cwd)) {}

RunningFencepost::~RunningFencepost() {
  if (running()) interrupt();
}

std::string RunningFencepost::output() const {
  return read_file(output_);
}

ExitStatus RunningFencepost::interrupt() {
  return child_.stop_blocking({{SIGINT, 0s}, {SIGKILL, 40s}});
}

void RunningFencepost::kill() {
  child_.stop_blocking({{SIGKILL, 0s}});
}

boost::json::value Answer::json() const {
  return boost::json::parse(body);
}

std::string Answer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

std::string Answer::code() const {
  boost::system::error_code not_json;
  const auto document = boost::json::parse(body, not_json);
  if (not_json || !document.is_object()) return {};
  const auto* value = document.as_object().if_contains("code");
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string{};
}

Answer ask(const Ask& request) {
  return run_blocking(send(request));
}

double metric_of(const std::string& node_url, const std::string& name) {
  const auto text = ask({.url = node_url + "/metrics"}).body;
  const auto brace = std::min(name.find('{'), name.size());
  const auto family = "fencepost_" + name.substr(0, brace);
  std::vector<std::string> labels;
  if (brace < name.size()) {
    std::istringstream list(name.substr(brace + 1, name.size() - brace - 2));
    for (std::string label; std::getline(list, label, ',');) labels.push_back(label);
  }
  const auto matches = [&](const std::string& line) {
    return (line.starts_with(family + " ") || line.starts_with(family + "{")) &&
           std::ranges::all_of(labels, [&](const auto& label) { return line.contains(label); });
  };
  double sum = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    at = end + 1;
    if (matches(line)) sum += std::stod(line.substr(line.rfind(' ')));
  }
  return sum;
}

std::uint16_t free_port() {
  // The range is below the ports that the kernel assigns by itself. An abstract socket, bound until this process ends,
  // reserves the port among concurrent tests before any program listens on it.
  SystemRandom random;
  for (int attempt = 0; attempt < 1'000; ++attempt) {
    const auto port = static_cast<std::uint16_t>(20'000 + random.next() % 10'000);
    const int kept = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    const auto text = fmt::format("fencepost-test-port-{}", port);
    std::ranges::copy(text, name.sun_path + 1);  // after a NUL: an abstract name, without a file
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    if (::bind(kept, reinterpret_cast<const sockaddr*>(&name), length) == 0) {
      asio::io_context context;
      asio::ip::tcp::acceptor acceptor(context);
      boost::system::error_code taken;
      acceptor.open(asio::ip::tcp::v4());
      acceptor.set_option(asio::socket_base::reuse_address(true));
      acceptor.bind({asio::ip::make_address("127.0.0.1"), port}, taken);
      if (!taken) return port;
    }
    ::close(kept);
  }
  throw Exception(internal("test_port", "found no free port between 20000 and 29999"));
}

}  // namespace fencepost::test
