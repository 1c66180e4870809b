#include "cli/api_client.hpp"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/json.hpp"
#include "http/client.hpp"
#include "http/problem.hpp"
#include "runtime/runtime.hpp"

#include "cli/text_table.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr std::size_t kMaxAnswerBytes = 64 << 20;
constexpr auto kBadAnswer = "bad_answer";

// Makes the message printable: it goes to a terminal and may quote a contract. Adds the error code, for the
// documentation, and the request's id, for the server's log.
Error for_terminal(const Error& problem, const http::ClientResponse& response) {
  Error out{problem.kind, problem.code, printable(problem.message), {{"code", printable(problem.code)}}, {}, {}};
  for (const auto& [key, value] : problem.context) out.with(printable(key), printable(value));
  if (const auto id = response.header("X-Request-Id")) out.with("X-Request-Id", printable(*id));
  return out;
}

awaitable<Result<http::ClientResponse>> send(http::ClientRequest request) {
  const auto executor = co_await this_executor();
  http::Client client(executor, {.max_body_bytes = kMaxAnswerBytes});
  auto response = co_await client.send(std::move(request));
  co_return response;
}

// Adds the URL's source to the error, so that the user knows what to correct if it is the wrong node.
Error naming(const ApiAccess& access, Error error) {
  error.with("url", access.url);
  if (access.url_from.empty()) return error;
  const bool stale = access.url_from.ends_with("up.json") && error.kind != ErrorKind::kUnauthenticated;
  return std::move(error.with("url from", access.from() + (stale ? ": check that this 'up' is still running" : "")));
}

Result<http::ClientResponse> call(const ApiAccess& access, http::ClientRequest request) {
  request.url = access.url + request.url;
  request.headers.emplace_back("Authorization", fmt::format("Bearer {}", access.api_key.reveal()));
  auto response = run_blocking(send(std::move(request)));
  if (!response) return fail(naming(access, std::move(response.error())));
  return response;
}

Result<json::value> call_for_json(const ApiAccess& access, http::ClientRequest request) {
  const auto response = call(access, std::move(request));
  if (!response) return fail(response.error());
  auto answer = read_answer(*response);
  const bool wrong_node = !answer && answer.error().code == kBadAnswer;
  const bool wrong_key = !answer && answer.error().kind == ErrorKind::kUnauthenticated;
  return wrong_node || wrong_key ? fail(naming(access, std::move(answer.error()))) : answer;
}

http::ClientRequest with_body(std::string method, const std::string& target, const json::value& body, bool repeatable) {
  http::ClientRequest request;
  request.method = std::move(method);
  request.url = target;
  request.headers = {{"Content-Type", "application/json"}};
  request.body = json::serialize(body);
  request.idempotent = repeatable;
  return request;
}

bool succeeded(const http::ClientResponse& response) {
  return response.status >= 200 && response.status < 300;
}

}  // namespace

Result<json::value> ApiClient::get(const std::string& target, std::chrono::milliseconds timeout) {
  http::ClientRequest request;
  request.url = target;
  request.idempotent = true;
  request.timeout = timeout;
  return call_for_json(access_, std::move(request));
}

Result<json::value> ApiClient::post(const std::string& target, const json::value& body, bool repeatable) {
  return call_for_json(access_, with_body("POST", target, body, repeatable));
}

Result<json::value> ApiClient::patch(const std::string& target, const json::value& body) {
  return call_for_json(access_, with_body("PATCH", target, body, true));
}

Result<json::value> ApiClient::put(const std::string& target, const json::value& body) {
  return call_for_json(access_, with_body("PUT", target, body, true));
}

Result<json::value> ApiClient::remove(const std::string& target) {
  http::ClientRequest request;
  request.method = "DELETE";
  request.url = target;
  request.idempotent = true;
  return call_for_json(access_, std::move(request));
}

Result<http::ClientResponse> ApiClient::get_file(const std::string& target) {
  http::ClientRequest request;
  request.url = target;
  request.idempotent = true;
  auto response = call(access_, std::move(request));
  if (!response || succeeded(*response)) return response;
  return fail(read_answer(*response).error());
}

Result<void> ApiClient::stream(const std::string& target, std::chrono::milliseconds silence,
                               std::function<bool(std::string_view)> on_piece) {
  http::ClientRequest request;
  request.url = target;
  request.idempotent = true;
  request.timeout = silence;
  request.on_body = std::move(on_piece);
  const auto response = call(access_, std::move(request));
  if (!response) return fail(response.error());
  if (succeeded(*response)) return {};
  return fail(read_answer(*response).error());
}

Result<json::value> read_answer(const http::ClientResponse& response) {
  if (succeeded(response)) {
    if (response.body.empty()) return json::value(nullptr);
    if (auto document = parse_json(response.body, kMaxAnswerBytes)) return std::move(*document);
  } else if (const auto problem = http::read_problem(response)) {
    return fail(for_terminal(*problem, response));
  }
  return fail(unavailable(kBadAnswer, fmt::format("the server's answer (status {}) is not from Fencepost: check that "
                                                  "the URL is that of a node",
                                                  response.status)));
}

}  // namespace fencepost::cli
