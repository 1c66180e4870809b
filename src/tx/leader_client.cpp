#include "tx/leader_client.hpp"

#include "base/json.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kMaxAnswer = 4 * 1024 * 1024;

std::string text_of(const boost::json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

ErrorKind kind_of(unsigned status) {
  switch (status) {
    case 400:
      return ErrorKind::kInvalid;
    case 401:
      return ErrorKind::kUnauthenticated;
    case 403:
      return ErrorKind::kForbidden;
    case 404:
      return ErrorKind::kNotFound;
    case 409:
      return ErrorKind::kConflict;
    case 413:
      return ErrorKind::kTooLarge;
    case 422:
      return ErrorKind::kUnprocessable;
    case 429:
      return ErrorKind::kRateLimited;
    case 504:
      return ErrorKind::kTimeout;
    default:
      return ErrorKind::kUnavailable;
  }
}

// A problem document of the leader's, as the error it was made from.
Error read_problem(unsigned status, const boost::json::object& problem) {
  Error error{kind_of(status), text_of(problem, "code"), text_of(problem, "detail"), {}, {}, {}};
  if (error.code.empty()) error.code = "leader_error";
  if (error.message.empty()) error.message = "the leader refused the request";
  for (const auto& [key, value] : problem) {
    const std::string_view name = key;
    const bool standard = name == "type" || name == "title" || name == "status" || name == "detail" || name == "code" ||
                          name == "instance" || name == "requestId";
    if (!standard && value.is_string()) error.with(std::string(name), std::string(value.get_string()));
  }
  return error;
}

Error outcome_unknown(const Error& cause) {
  return unavailable("outcome_unknown",
                     "the leader did not answer; it may have accepted the request: ask again with the same requestId")
      .after(std::chrono::seconds(1))
      .because(cause.to_string());
}

}  // namespace

Error not_leader(const std::string& why) {
  return conflict("not_leader", "another node leads this signer; try again shortly")
      .with("why", why)
      .after(std::chrono::seconds(1));
}

LeaderClient::LeaderClient(Runtime& runtime, std::chrono::milliseconds timeout) : timeout_(timeout) {
  for (std::size_t i = 0; i < runtime.size(); ++i) {
    clients_.push_back(std::make_unique<http::Client>(
        runtime.executor(i),
        http::ClientOptions{.connect_timeout = std::chrono::seconds(2), .max_connections_per_origin = 64}));
  }
}

awaitable<Result<LeaderClient::Answer>> LeaderClient::create(std::string leader_url, std::string authorization,
                                                             Uuid tx_id, std::string body) {
  while (leader_url.ends_with('/')) leader_url.pop_back();
  http::ClientRequest request{
      .method = "POST", .url = leader_url + "/api/v1/tx", .headers = {}, .body = std::move(body)};
  request.headers = {{"Content-Type", "application/json"},
                     {"Authorization", std::move(authorization)},
                     {std::string(kForwardedHeader), tx_id.to_string()}};
  request.timeout = timeout_;
  const auto response = co_await clients_[Runtime::current()]->send(std::move(request));
  if (!response) {
    if (http::may_have_been_sent(response.error())) co_return fail(outcome_unknown(response.error()));
    co_return fail(not_leader("the leader cannot be reached").because(response.error().to_string()));
  }
  const auto parsed = parse_json(response->body, kMaxAnswer);
  if (!parsed || !parsed->is_object()) {
    co_return fail(outcome_unknown(internal("bad_answer", "the leader's answer is not a JSON object")));
  }
  const auto& object = parsed->get_object();
  if (response->status == 200 || response->status == 202) {
    const auto id = Uuid::parse(text_of(object, "txId"));
    if (!id) co_return fail(outcome_unknown(id.error()));
    co_return Answer{*id, response->status == 200};
  }
  auto problem = read_problem(response->status, object);
  // A bug over there says nothing about what it had done before.
  if (response->status == 500) co_return fail(outcome_unknown(problem));
  co_return fail(std::move(problem));
}

}  // namespace fencepost::tx
