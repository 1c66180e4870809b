#include "tests/support/rpc_rewriter.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "http/client.hpp"

namespace fencepost::test {

namespace json = boost::json;

namespace {

// "latest" and "pending" are the last block that a lagging endpoint knows.
void name_last_block(json::object& call, std::int64_t last) {
  for (auto& parameter : call.at("params").as_array()) {
    const auto* text = parameter.if_string();
    if (text != nullptr && (*text == "latest" || *text == "pending")) parameter = fmt::format("0x{:x}", last);
  }
}

bool is_above(const json::value& block_or_receipt, std::int64_t last) {
  const auto* object = block_or_receipt.if_object();
  if (object == nullptr) return false;
  const auto* number = object->if_contains("number");
  if (number == nullptr) number = object->if_contains("blockNumber");
  if (number == nullptr || !number->is_string()) return false;
  return std::stoll(std::string(number->as_string()), nullptr, 16) > last;
}

}  // namespace

RpcRewriter::RpcRewriter(std::string url)
    : url_(std::move(url)), server_([this](http::Router& router) {
        router.add({http::Verb::kPost, "/", http::Access::open(), [this](http::Request& r) { return answer(r); }});
      }) {}

void RpcRewriter::change(const std::string& method, Change change) {
  const std::lock_guard lock(mutex_);
  changes_[method] = std::move(change);
}

void RpcRewriter::refuse(const std::string& method, Refuse refuse) {
  const std::lock_guard lock(mutex_);
  refusals_[method] = std::move(refuse);
}

std::map<std::string, std::string> RpcRewriter::take_refused(json::value& calls) {
  std::map<std::string, std::string> out;
  const auto look_at = [&](json::object& call) {
    Refuse refuse;
    {
      const std::lock_guard lock(mutex_);
      const auto it = refusals_.find(std::string(call.at("method").as_string()));
      if (it == refusals_.end()) return;
      refuse = it->second;
    }
    const auto message = refuse(call);
    if (!message) return;
    out.emplace(json::serialize(call.at("id")), *message);
    ++touched_;
    call["method"] = "eth_chainId";
    call["params"] = json::array();
  };
  if (calls.is_object()) look_at(calls.as_object());
  if (calls.is_array()) {
    for (auto& call : calls.as_array()) look_at(call.as_object());
  }
  return out;
}

void RpcRewriter::answer_null(const std::string& method) {
  change(method, [](const json::object&, json::object reply) {
    reply["result"] = nullptr;
    return reply;
  });
}

void RpcRewriter::answer_error(const std::string& method, int code, const std::string& message) {
  change(method, [code, message](const json::object&, json::object reply) {
    reply.erase("result");
    reply["error"] = {{"code", code}, {"message", message}};
    return reply;
  });
}

void RpcRewriter::hold(const std::string& method) {
  const std::lock_guard lock(mutex_);
  gates_[method] = std::make_shared<http::testing::Gate>();
}

void RpcRewriter::release(const std::string& method) {
  const std::lock_guard lock(mutex_);
  const auto gate = gates_.extract(method);
  if (!gate.empty()) gate.mapped()->open();
}

awaitable<> RpcRewriter::wait_while_held(const json::object& call) {
  std::shared_ptr<http::testing::Gate> gate;
  {
    const std::lock_guard lock(mutex_);
    const auto it = gates_.find(std::string(call.at("method").as_string()));
    if (it != gates_.end()) gate = it->second;
  }
  if (!gate) co_return;
  ++touched_;
  co_await gate->pass();
}

void RpcRewriter::pass(const std::string& method) {
  const std::lock_guard lock(mutex_);
  changes_.erase(method);
  refusals_.erase(method);
}

void RpcRewriter::pass_all() {
  const std::lock_guard lock(mutex_);
  changes_.clear();
  refusals_.clear();
}

void RpcRewriter::lag(std::optional<std::int64_t> last_block) {
  const std::lock_guard lock(mutex_);
  last_block_ = last_block;
}

void RpcRewriter::fail(bool down) {
  const std::lock_guard lock(mutex_);
  fails_ = down;
}

bool RpcRewriter::fails() const {
  const std::lock_guard lock(mutex_);
  return fails_;
}

void RpcRewriter::limit_batches(std::size_t calls, TooLarge larger) {
  const std::lock_guard lock(mutex_);
  batch_limit_ = calls;
  larger_ = larger;
}

std::optional<json::value> RpcRewriter::refuse_batch(json::value& calls) {
  const std::lock_guard lock(mutex_);
  auto* batch = calls.if_array();
  if (batch_limit_ == 0 || batch == nullptr || batch->size() <= batch_limit_) return std::nullopt;
  ++touched_;
  if (larger_ == TooLarge::kRefused) {
    return json::object{
        {"jsonrpc", "2.0"}, {"id", nullptr}, {"error", {{"code", -32600}, {"message", "batch too large"}}}};
  }
  batch->resize(batch_limit_);
  return std::nullopt;
}

void RpcRewriter::swallow_broadcasts(bool swallow) {
  const std::lock_guard lock(mutex_);
  swallows_ = swallow;
}

// The hash of the bytes is the transaction's hash: the reply is the one that an endpoint gives when it accepts.
void RpcRewriter::drop_broadcast(json::object& call) {
  const std::lock_guard lock(mutex_);
  if (!swallows_ || call.at("method") != "eth_sendRawTransaction") return;
  ++counts_["eth_sendRawTransaction"];
  ++touched_;
  call["method"] = "web3_sha3";
}

std::optional<std::int64_t> RpcRewriter::last_block() const {
  const std::lock_guard lock(mutex_);
  return last_block_;
}

std::size_t RpcRewriter::changed(const std::string& method) const {
  const std::lock_guard lock(mutex_);
  const auto it = counts_.find(method);
  return it == counts_.end() ? 0 : it->second;
}

awaitable<http::Response> RpcRewriter::answer(http::Request& request) {
  if (fails()) {
    ++touched_;
    co_return http::Response::text(503, "down");
  }
  auto calls = json::parse(request.body());
  if (auto refusal = refuse_batch(calls)) co_return http::Response::json(200, std::move(*refusal));
  if (calls.is_object()) co_await wait_while_held(calls.as_object());
  if (calls.is_array()) {
    for (const auto& call : calls.as_array()) co_await wait_while_held(call.as_object());
  }
  if (const auto last = last_block()) {
    ++touched_;
    if (calls.is_object()) name_last_block(calls.as_object(), *last);
    if (calls.is_array()) {
      for (auto& call : calls.as_array()) name_last_block(call.as_object(), *last);
    }
  }
  if (calls.is_object()) drop_broadcast(calls.as_object());
  if (calls.is_array()) {
    for (auto& call : calls.as_array()) drop_broadcast(call.as_object());
  }
  auto onward_calls = calls;
  const auto refused = take_refused(onward_calls);
  const auto executor = co_await this_executor();
  http::Client client(executor, {});
  http::ClientRequest onward{.method = "POST",
                             .url = url_,
                             .headers = {{"Content-Type", "application/json"}},
                             .body = json::serialize(onward_calls)};
  const auto reply = co_await client.send(std::move(onward));
  if (!reply) co_return http::Response::text(502, reply.error().to_string());
  if (reply->status != 200) co_return http::Response::text(reply->status, reply->body);
  auto answers = rewrite(calls, json::parse(reply->body));
  const auto put_refusal = [&](json::object& one) {
    const auto it = refused.find(json::serialize(one.at("id")));
    if (it == refused.end()) return;
    one.erase("result");
    one["error"] = {{"code", -32000}, {"message", it->second}};
  };
  if (answers.is_object()) put_refusal(answers.as_object());
  if (answers.is_array()) {
    for (auto& one : answers.as_array()) put_refusal(one.as_object());
  }
  co_return http::Response::json(200, answers);
}

json::value RpcRewriter::rewrite(const json::value& request, json::value reply) {
  if (request.is_object()) return rewrite_one(request.as_object(), std::move(reply.as_object()));
  // A server may answer a batch in any order.
  std::map<std::string, const json::object*> calls;
  for (const auto& call : request.as_array()) calls.emplace(json::serialize(call.at("id")), &call.as_object());
  for (auto& one : reply.as_array()) {
    const auto& call = *calls.at(json::serialize(one.at("id")));
    one = rewrite_one(call, std::move(one.as_object()));
  }
  return reply;
}

json::object RpcRewriter::rewrite_one(const json::object& call, json::object reply) {
  const std::string method(call.at("method").as_string());
  if (const auto last = last_block()) {
    const auto* result = reply.if_contains("result");
    if (result != nullptr && is_above(*result, *last)) reply["result"] = nullptr;
    if (result != nullptr && method == "eth_blockNumber") reply["result"] = fmt::format("0x{:x}", *last);
  }
  Change change;
  {
    const std::lock_guard lock(mutex_);
    const auto it = changes_.find(method);
    if (it == changes_.end()) return reply;
    ++counts_[method];
    ++touched_;
    change = it->second;
  }
  return change(call, std::move(reply));
}

}  // namespace fencepost::test
