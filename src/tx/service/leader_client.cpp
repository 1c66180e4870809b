#include "tx/service/leader_client.hpp"

#include "base/json.hpp"
#include "http/problem.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kMaxAnswer = 4 * 1024 * 1024;

std::optional<Uuid> accepted_id(std::string_view body) {
  const auto document = parse_json(body, kMaxAnswer);
  const auto* object = document ? document->if_object() : nullptr;
  const auto* id = object == nullptr ? nullptr : object->if_contains("txId");
  if (id == nullptr || !id->is_string()) return std::nullopt;
  const auto parsed = Uuid::parse(id->get_string());
  return parsed ? std::optional(*parsed) : std::nullopt;
}

}  // namespace

Error not_leader(const std::string& why) {
  return conflict("not_leader", "this node does not lead the signer; retry after a short delay")
      .with("why", why)
      .after(std::chrono::seconds(1));
}

Error naming(Error error, const LeaseView& node) {
  error.with("node", node.owner_node);
  if (!node.advertise_url.empty()) error.with("leader", node.advertise_url);
  return error;
}

Error leader_unknown(const std::string& cause) {
  return unavailable("outcome_unknown",
                     "the leader did not answer and may have accepted the request; retry with the same requestId")
      .after(std::chrono::seconds(1))
      .because(cause);
}

Error unknown_chain() {
  return invalid("unknown_chain", "chainId: this chain is not configured").with("field", "chainId");
}

Error no_leader() {
  return unavailable("no_leader", "no node leads the signer at the moment; nothing happened: retry after a short delay")
      .after(std::chrono::seconds(1));
}

Error no_key_now() {
  return unavailable("no_leader",
                     "no live node has the key of the signer; nothing happened: retry when the node that has it runs")
      .after(std::chrono::seconds(5));
}

LeaderClient::LeaderClient(Runtime& runtime) {
  for (std::size_t i = 0; i < runtime.size(); ++i) {
    clients_.push_back(std::make_unique<http::Client>(
        runtime.executor(i),
        http::ClientOptions{.connect_timeout = std::chrono::seconds(2), .max_connections_per_origin = 64}));
  }
}

awaitable<Result<LeaderClient::Answer>> LeaderClient::create(std::string leader_url, std::string authorization,
                                                             Uuid tx_id, std::string body,
                                                             std::chrono::milliseconds timeout) {
  while (leader_url.ends_with('/')) leader_url.pop_back();
  http::ClientRequest request{
      .method = "POST", .url = leader_url + "/api/v1/tx", .headers = {}, .body = std::move(body)};
  request.headers = {{"Content-Type", "application/json"},
                     {"Authorization", std::move(authorization)},
                     {std::string(kForwardedHeader), tx_id.to_string()}};
  request.timeout = timeout;
  const auto response = co_await clients_[Runtime::current()]->send(std::move(request));
  if (!response) {
    const auto& error = response.error();
    if (error.code == "connection_lost") co_return fail(unavailable(std::string(kLeaderLost), error.message));
    if (http::may_have_been_sent(error)) co_return fail(leader_unknown(error.to_string()));
    co_return fail(not_leader("the leader cannot be reached").because(error.to_string()));
  }
  const bool accepted = response->status == 200 || response->status == 202;
  auto id = accepted ? accepted_id(response->body) : std::nullopt;
  if (id) co_return Answer{*id, response->status == 200};
  auto problem = http::read_problem(*response);
  // After an unreadable answer or an internal error, the leader may or may not have stored the transaction.
  if (!problem || problem->kind == ErrorKind::kInternal) {
    co_return fail(leader_unknown(problem ? problem->to_string() : "the leader's answer cannot be read"));
  }
  co_return fail(std::move(*problem));
}

}  // namespace fencepost::tx
