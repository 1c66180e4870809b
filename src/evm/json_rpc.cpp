#include "evm/json_rpc.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/text.hpp"
#include "evm/logs/log_refusal.hpp"
#include "runtime/gather.hpp"
#include "runtime/log.hpp"

namespace fencepost::evm {
namespace {

constexpr std::string_view kReach = "reach";
constexpr unsigned kTooLarge = 413;  // the HTTP status

std::string request_text(const RpcCall& call, std::uint64_t id) {
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":{},"params":{}}})", id,
                     boost::json::serialize(boost::json::value(call.method)),
                     call.params_text.empty() ? boost::json::serialize(call.params) : call.params_text);
}

std::string body_text(std::span<const RpcCall> calls, std::uint64_t first_id, bool as_batch) {
  if (!as_batch) return request_text(calls.front(), first_id);
  std::string body = "[";
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) body += ',';
    body += request_text(calls[i], first_id + i);
  }
  return body += ']';
}

std::optional<std::string_view> context_of(const Error& error, std::string_view key) {
  for (const auto& [name, value] : error.context) {
    if (name == key) return value;
  }
  return std::nullopt;
}

std::chrono::seconds retry_after(const http::ClientResponse& response) {
  const auto text = response.header("Retry-After").value_or("");
  std::int64_t seconds = 0;  // the HTTP date form is ignored: the backoff covers it
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return std::chrono::seconds(std::max<std::int64_t>(seconds, 0));
}

// Statuses whose body is not a JSON-RPC reply: they come from the HTTP server or a proxy, not from the node.
bool is_refusal(unsigned status) {
  return status >= 500 || status == 401 || status == 402 || status == 403 || status == 404 || status == 407 ||
         status == 408 || status == kTooLarge || status == 429 || (status >= 300 && status < 400);
}

// The node's answer in the body of such a status when it says that a range of logs is too large: some providers send it
// with 403 or 500. Nothing for any other body.
std::optional<RpcOutcome> range_refusal(std::string& body, std::uint64_t id) {
  auto outcome = parse_single_reply(body, id);
  if (!outcome || *outcome || !refuses_range(outcome->error().message, outcome->error().data)) return std::nullopt;
  return std::move(*outcome);
}

}  // namespace

// One attempt at one endpoint: the outcomes, or why there are none.
struct JsonRpcClient::Attempt {
  std::vector<RpcOutcome> outcomes;
  std::optional<Error> failure;
  bool sent = true;
  bool batch_refused = false;  // a smaller batch may succeed
  std::chrono::seconds leave_alone{0};
};

// The outcomes of one exchange, and where they come from.
struct JsonRpcClient::Exchange {
  std::size_t endpoint = 0;
  std::vector<RpcOutcome> outcomes;
  bool earlier_unknown = false;  // an endpoint before this one may have executed the calls
};

Reach reach_of(const Error& error) {
  const auto reach = context_of(error, kReach).value_or("");
  return reach == "nowhere" ? Reach::kNowhere : reach == "answered" ? Reach::kAnswered : Reach::kUnknown;
}

std::optional<std::int64_t> rpc_code(const Error& error) {
  const auto text = context_of(error, "rpcCode");
  std::int64_t code = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), code).ec != std::errc{}) return std::nullopt;
  return code;
}

JsonRpcClient::JsonRpcClient(http::Client& http, std::vector<std::string> endpoints, JsonRpcOptions options,
                             const Clock& clock, Random& random, Metrics& metrics)
    : http_(http),
      urls_(std::move(endpoints)),
      options_(std::move(options)),
      clock_(clock),
      health_(urls_, options_.cooldown, options_.max_batch, clock, random),
      metrics_(metrics) {
  options_.max_batch = std::max<std::size_t>(1, options_.max_batch);
  for (std::size_t i = 0; i < health_.size(); ++i) {
    const Metrics::Labels labels{{"chain", options_.chain}, {"endpoint", health_.label(i)}};
    endpoint_metrics_.push_back(
        {&metrics.latency("rpc_request_duration_seconds", "One HTTP exchange with an endpoint", labels),
         &metrics.gauge("rpc_endpoint_latency_seconds", "Moving average of an endpoint's response time", labels),
         &metrics.gauge("rpc_endpoint_up", "1 when the endpoint answered the last request, 0 when it did not", labels),
         &metrics.gauge("rpc_endpoint_head", "The newest block that the endpoint reported", labels),
         &metrics.gauge("rpc_endpoint_batch_limit", "Calls that one request to the endpoint may hold", labels),
         {}});
    endpoint_metrics_.back().up->Set(1);
    endpoint_metrics_.back().batch_limit->Set(static_cast<double>(options_.max_batch));
  }
}

void JsonRpcClient::count(std::size_t endpoint, const RpcCall& call, std::string_view result) {
  const auto& label = call.label.empty() ? call.method : call.label;
  auto& counter = endpoint_metrics_[endpoint].requests[{label, std::string(result)}];
  if (counter == nullptr) {
    counter =
        &metrics_.counter("rpc_requests_total", "Calls by endpoint; result is ok, error (an answer) or failed (none)",
                          {{"chain", options_.chain},
                           {"endpoint", health_.label(endpoint)},
                           {"method", label},
                           {"result", std::string(result)}});
  }
  counter->Increment();
}

awaitable<Result<RpcValue>> JsonRpcClient::call(RpcCall call, RpcCallOptions options) {
  std::vector<RpcCall> calls;
  calls.push_back(std::move(call));
  auto results = co_await ask(std::move(calls), options, false);
  co_return std::move(results.front());
}

awaitable<std::vector<Result<RpcValue>>> JsonRpcClient::batch(std::vector<RpcCall> calls, RpcCallOptions options) {
  std::vector<Result<RpcValue>> results;
  results.reserve(calls.size());
  for (auto rest = calls.begin(); rest != calls.end();) {
    const auto size = std::min<std::ptrdiff_t>(calls.end() - rest, static_cast<std::ptrdiff_t>(options_.max_batch));
    std::vector<RpcCall> part(std::make_move_iterator(rest), std::make_move_iterator(rest + size));
    rest += size;
    auto answers = co_await ask(std::move(part), options, true);
    std::ranges::move(answers, std::back_inserter(results));
  }
  co_return results;
}

awaitable<std::vector<Result<RpcOutcome>>> JsonRpcClient::forward(std::vector<RpcCall> calls, RpcCallOptions options) {
  std::vector<Result<RpcOutcome>> results;
  results.reserve(calls.size());
  const bool as_batch = calls.size() > 1;
  for (auto rest = calls.begin(); rest != calls.end();) {
    const auto size = std::min<std::ptrdiff_t>(calls.end() - rest, static_cast<std::ptrdiff_t>(options_.max_batch));
    std::vector<RpcCall> part(std::make_move_iterator(rest), std::make_move_iterator(rest + size));
    rest += size;
    auto answered = co_await exchange(std::move(part), options, as_batch);
    if (answered) {
      for (auto& outcome : answered->outcomes) results.emplace_back(std::move(outcome));
    } else {
      for (std::ptrdiff_t i = 0; i < size; ++i) results.push_back(fail(answered.error()));
    }
  }
  co_return results;
}

awaitable<std::vector<Result<RpcValue>>> JsonRpcClient::ask(std::vector<RpcCall> calls, RpcCallOptions options,
                                                            bool as_batch) {
  const auto size = calls.size();
  auto answered = co_await exchange(std::move(calls), options, as_batch);
  if (!answered) co_return std::vector<Result<RpcValue>>(size, fail(answered.error()));
  co_return deliver(answered->endpoint, std::move(answered->outcomes), answered->earlier_unknown);
}

awaitable<Result<JsonRpcClient::Exchange>> JsonRpcClient::exchange(std::vector<RpcCall> calls, RpcCallOptions options,
                                                                   bool as_batch) {
  const auto candidates = options.endpoint ? std::vector{*options.endpoint} : health_.candidates();
  bool unknown = false;
  Error last = unavailable("wrong_chain", "every endpoint is on another chain");
  for (const auto endpoint : candidates) {
    if (auto doubt = co_await chain_doubt(endpoint, options)) {
      last = std::move(*doubt).with("endpoint", health_.label(endpoint));
      continue;
    }
    auto tried = co_await attempt_in_parts(endpoint, calls, as_batch, options);
    if (!tried.failure) {
      for (std::size_t i = 0; i < calls.size(); ++i) count(endpoint, calls[i], tried.outcomes[i] ? "ok" : "error");
      co_return Exchange{endpoint, std::move(tried.outcomes), unknown};
    }
    for (const auto& call : calls) count(endpoint, call, "failed");
    unknown = unknown || tried.sent;
    last = std::move(*tried.failure).with("endpoint", health_.label(endpoint));
    if (unknown && !options.repeatable) break;
  }
  auto error = unavailable("rpc_unavailable", fmt::format("no RPC endpoint answered; the last one: {}", last.message))
                   .with("cause", last.code)
                   .with(std::string(kReach), unknown ? "unknown" : "nowhere");
  if (const auto endpoint = context_of(last, "endpoint")) error.with("endpoint", std::string(*endpoint));
  co_return fail(std::move(error));
}

awaitable<std::optional<Error>> JsonRpcClient::chain_doubt(std::size_t endpoint, RpcCallOptions options) {
  if (options.any_chain || options_.chain_id == 0) co_return std::nullopt;
  if (health_.chain_unchecked(endpoint)) {
    const auto id = co_await check_endpoint(endpoint, options_.chain_id, Proof::kNothing);
    if (!id) co_return id.error();
  }
  if (!health_.status(endpoint).wrong_chain) co_return std::nullopt;
  co_return unavailable("wrong_chain", "the endpoint is on another chain");
}

awaitable<JsonRpcClient::Attempt> JsonRpcClient::attempt_in_parts(std::size_t endpoint,
                                                                  const std::vector<RpcCall>& calls, bool as_batch,
                                                                  const RpcCallOptions& options) {
  Attempt all;
  std::span<const RpcCall> rest(calls);
  while (!rest.empty()) {
    const auto part = rest.first(as_batch ? std::min(rest.size(), health_.batch_limit(endpoint)) : 1);
    // A server that refuses every batch may still answer single calls.
    auto tried = co_await attempt(endpoint, part, as_batch && part.size() > 1, options);
    if (tried.batch_refused && part.size() > 1) {
      limit_batch(endpoint, part.size(), *tried.failure);
      if (options.repeatable || !tried.sent) continue;
    }
    if (tried.failure) {
      tried.sent = tried.sent || !all.outcomes.empty();
      co_return tried;
    }
    std::ranges::move(tried.outcomes, std::back_inserter(all.outcomes));
    rest = rest.subspan(part.size());
  }
  co_return all;
}

awaitable<JsonRpcClient::Attempt> JsonRpcClient::attempt(std::size_t endpoint, std::span<const RpcCall> calls,
                                                         bool as_batch, const RpcCallOptions& options) {
  const auto first_id = next_id_;
  next_id_ += calls.size();
  http::ClientRequest request{.method = "POST",
                              .url = urls_.at(endpoint),
                              .headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}},
                              .body = body_text(calls, first_id, as_batch),
                              .idempotent = options.repeatable,
                              .timeout = options.timeout.value_or(options_.timeout)};
  const auto started = std::chrono::steady_clock::now();
  auto response = co_await http_.send(std::move(request));
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - started);
  endpoint_metrics_[endpoint].duration->Observe(std::chrono::duration<double>(took).count());
  Attempt result;
  const bool new_connection = response && response->over_new_connection;
  if (response) {
    result = read(std::move(*response), first_id, calls.size(), as_batch, options);
  } else {
    result.sent = http::may_have_been_sent(response.error());
    result.batch_refused = response.error().code == "response_too_large";
    result.failure = std::move(response.error());
  }
  // An endpoint that wants smaller batches is well.
  if (!result.batch_refused || calls.size() == 1) record(endpoint, result, took, options.proof);
  // The answer counts only if the node that is connected now is on the chain.
  if (!result.failure && new_connection && !options.any_chain) {
    health_.doubt_chain(endpoint);
    result.failure = co_await chain_doubt(endpoint, options);
  }
  co_return result;
}

void JsonRpcClient::limit_batch(std::size_t endpoint, std::size_t refused, const Error& why) {
  const auto before = health_.status(endpoint).batch_limit;
  health_.batch_refused(endpoint, refused);
  const auto now = health_.status(endpoint).batch_limit;
  if (now == before) return;
  endpoint_metrics_[endpoint].batch_limit->Set(static_cast<double>(now));
  log::warn("RPC endpoint refused a batch and gets smaller ones; rpc.batch_size sets the size from the start", why,
            {{"chain", options_.chain}, {"endpoint", health_.label(endpoint)}, {"calls", refused}, {"limit", now}});
}

void JsonRpcClient::note_head(std::size_t endpoint, std::int64_t number) {
  health_.note_head(endpoint, number);
  endpoint_metrics_[endpoint].head->Set(static_cast<double>(number));
}

void JsonRpcClient::compare_heads(const std::vector<std::optional<std::int64_t>>& heads) {
  for (const auto endpoint : health_.compare_heads(heads)) {
    const auto status = health_.status(endpoint);
    const log::Fields fields{{"chain", options_.chain}, {"endpoint", status.label}, {"head", *heads[endpoint]}};
    if (status.behind) {
      log::warn("RPC endpoint is behind the others: it is used only when they do not answer", fields);
    } else {
      log::info("RPC endpoint is level with the others again", fields);
    }
  }
}

void JsonRpcClient::record(std::size_t endpoint, const Attempt& attempt, std::chrono::microseconds took, Proof proof) {
  const auto& metrics = endpoint_metrics_[endpoint];
  const auto before = health_.status(endpoint);
  if (attempt.failure) {
    metrics.up->Set(0);
    const bool began = health_.failed(endpoint, attempt.leave_alone);
    if (!began) return;
    on_health_();
    log::warn("RPC endpoint does not answer; further failures are counted but not logged", *attempt.failure,
              {{"chain", options_.chain}, {"endpoint", before.label}});
    return;
  }
  const bool ended = health_.succeeded(endpoint, took, proof);
  const auto now = health_.status(endpoint);
  metrics.up->Set(now.consecutive_failures == 0 ? 1 : 0);
  if (ended) {
    const auto failing = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - *before.failing_since);
    log::info("RPC endpoint answers again", {{"chain", options_.chain},
                                             {"endpoint", before.label},
                                             {"failures", before.consecutive_failures},
                                             {"failingMs", failing.count()}});
    on_health_();
  }
  metrics.latency->Set(std::chrono::duration<double>(now.latency).count());
}

JsonRpcClient::Attempt JsonRpcClient::read(http::ClientResponse response, std::uint64_t first_id, std::size_t count,
                                           bool as_batch, const RpcCallOptions& options) const {
  Attempt attempt;
  if (is_refusal(response.status)) {
    if (auto refused = as_batch ? std::nullopt : range_refusal(response.body, first_id)) {
      attempt.outcomes.push_back(std::move(*refused));
      return attempt;
    }
    attempt.failure =
        unavailable("http_status", fmt::format("HTTP status {}: {}", response.status, quote(response.body, 120)));
    attempt.leave_alone = retry_after(response);
    attempt.sent = response.status >= 500 || response.status == 408;  // other statuses: no call was executed
    attempt.batch_refused = as_batch && (response.status == kTooLarge || refuses_batch(response.body));
    return attempt;
  }
  if (as_batch) {
    auto outcomes = parse_batch_reply(response.body, first_id, count);
    if (!outcomes) {
      const auto& code = outcomes.error().code;
      attempt.sent = code != "batch_refused" && code != "batch_too_large";
      attempt.batch_refused = code == "batch_truncated" || code == "batch_too_large";
      attempt.failure = std::move(outcomes.error());
      return attempt;
    }
    attempt.outcomes = std::move(*outcomes);
  } else {
    auto outcome = parse_single_reply(response.body, first_id);
    if (!outcome) {
      attempt.failure = std::move(outcome.error());
      return attempt;
    }
    attempt.outcomes.push_back(std::move(*outcome));
  }
  for (const auto& outcome : attempt.outcomes) {
    if (outcome) continue;
    const auto& [code, message, data, text] = outcome.error();
    const bool refused = as_batch && count > 1 && refuses_batch(message);
    if (!refused && !means_sick_endpoint(outcome.error())) continue;
    if (!refused && options.bare_limit_is_answer && is_bare_limit(code, message)) continue;
    const auto words = fmt::format("the endpoint refused: {} ({})", quote(message, 200), code);
    attempt.failure = refused ? unavailable("batch_refused", words) : unavailable("endpoint_sick", words);
    attempt.leave_alone = retry_after(response);
    attempt.sent = count > 1;  // other calls of the batch may have been carried out
    attempt.batch_refused = refused;
    break;
  }
  return attempt;
}

std::vector<Result<RpcValue>> JsonRpcClient::deliver(std::size_t endpoint, std::vector<RpcOutcome> outcomes,
                                                     bool earlier_unknown) const {
  std::vector<Result<RpcValue>> results;
  results.reserve(outcomes.size());
  for (auto& outcome : outcomes) {
    if (outcome) {
      outcome->set_endpoint(endpoint);
      results.emplace_back(std::move(*outcome));
      continue;
    }
    auto& [code, message, data, text] = outcome.error();
    Error error{ErrorKind::kUnprocessable, "rpc_error", std::move(message), {}, {}};
    error.with("rpcCode", std::to_string(code)).with("endpoint", health_.label(endpoint));
    error.with(std::string(kReach), earlier_unknown ? "unknown" : "answered");
    if (!data.empty()) error.with("data", std::move(data));
    results.push_back(fail(std::move(error)));
  }
  return results;
}

awaitable<Result<std::uint64_t>> JsonRpcClient::chain_id(RpcCallOptions options) {
  RpcCall question{"eth_chainId", {}};
  auto value = co_await call(std::move(question), options);
  if (!value) co_return fail(std::move(value.error()));
  co_return value->as_quantity();
}

awaitable<Result<std::uint64_t>> JsonRpcClient::check_endpoint(std::size_t endpoint, std::uint64_t expected,
                                                               Proof proof) {
  RpcCallOptions only_this;
  only_this.endpoint = endpoint;
  only_this.any_chain = true;
  only_this.proof = proof;
  auto id = co_await chain_id(only_this);
  // A relay that only takes transactions need not know the method, and says so in words of its own. A transaction names
  // its chain, so none can be executed elsewhere.
  constexpr std::int64_t kMethodNotFound = -32601;
  const auto refusal = id ? std::nullopt : rpc_code(id.error());
  if (refusal && (options_.relays || *refusal == kMethodNotFound)) id = expected;
  if (!id) co_return fail(std::move(id.error()));
  const bool wrong = *id != expected;
  const auto before = health_.status(endpoint);
  health_.set_wrong_chain(endpoint, wrong);
  if (wrong && !before.wrong_chain) {
    log::error("RPC endpoint is on another chain: it is not used",
               {{"chain", options_.chain}, {"endpoint", before.label}, {"chainId", *id}, {"expected", expected}});
  } else if (!wrong && before.wrong_chain) {
    log::info("RPC endpoint is on the right chain again", {{"chain", options_.chain}, {"endpoint", before.label}});
  }
  on_health_();
  co_return *id;
}

awaitable<Result<void>> JsonRpcClient::check_chain_id(std::uint64_t expected) {
  std::vector<awaitable<Result<std::uint64_t>>> checks;
  for (std::size_t i = 0; i < health_.size(); ++i) checks.push_back(check_endpoint(i, expected, Proof::kAnswers));
  const auto ids = co_await gather(std::move(checks));
  std::string wrong;
  std::optional<Error> failure;
  bool confirmed = false;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto& id = ids[i];
    if (!id) {
      failure = id.error();
      continue;
    }
    confirmed = confirmed || *id == expected;
    if (*id != expected) wrong += fmt::format("{}{} is on chain {}", wrong.empty() ? "" : ", ", health_.label(i), *id);
  }
  if (!wrong.empty()) {
    co_return fail(conflict("wrong_chain", fmt::format("expected chain {}, but {}", expected, wrong)));
  }
  if (!confirmed) co_return fail(*failure);
  co_return Result<void>();
}

}  // namespace fencepost::evm
