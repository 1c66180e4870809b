#include "evm/evm_connector.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "evm/broadcast.hpp"
#include "evm/call_error.hpp"
#include "evm/connector_read.hpp"
#include "evm/keccak.hpp"
#include "evm/reply/block_reply.hpp"
#include "runtime/completion.hpp"

namespace fencepost::evm {
namespace {

using detail::hex;
using detail::mismatched_result;
using detail::read;
using detail::read_all;
using detail::require_hashes;

constexpr std::size_t kMaxSendBytes = 1024 * 1024;  // of raw transactions in one request
constexpr std::size_t kMostBroadcasts = 64;         // requests that may be unanswered at once

// Up to this many, a batch of single receipts is smaller than all receipts of a block.
constexpr std::size_t kFewReceipts = 8;
// Blocks requested in one batch.
constexpr std::size_t kBlocksAtOnce = 50;

std::string_view name_of(BlockTag tag) {
  switch (tag) {
    case BlockTag::kSafe:
      return "safe";
    case BlockTag::kFinalized:
      return "finalized";
    case BlockTag::kLatest:
      break;
  }
  return "latest";
}

bool means_no_such_method(const Error& error) {
  constexpr std::int64_t kMethodNotFound = -32601;
  constexpr std::int64_t kMethodNotEnabled = -32604;  // besu's
  const auto code = rpc_code(error);
  return code == kMethodNotFound || code == kMethodNotEnabled || error.message.contains("does not exist") ||
         error.message.contains("not supported") || error.message.contains("nsupported method") ||
         error.message.contains("not whitelisted");
}

boost::json::object call_object(const CallRequest& call) {
  boost::json::object object{{"value", to_quantity(call.value)}, {"data", call.data}};
  if (!call.from.empty()) object["from"] = call.from;
  if (call.to) object["to"] = *call.to;
  if (call.gas) object["gas"] = to_quantity(*call.gas);
  return object;
}

std::vector<Receipt> in_block(std::vector<Receipt> receipts, const std::string& block_hash) {
  std::erase_if(receipts, [&](const Receipt& receipt) { return receipt.block_hash != block_hash; });
  return receipts;
}

SendResult send_result(const Result<RpcValue>& answer, const std::string& raw) {
  if (answer) {
    const auto hash = answer->as_string();
    const auto bytes = from_hex0x(raw);
    if (hash && bytes && *hash == to_hex0x(keccak256(*bytes))) {
      return {.outcome = SubmitClass::kAccepted, .message = {}, .reach = Reach::kAnswered, .answers = 1};
    }
    return {.outcome = SubmitClass::kUnknown,
            .message = fmt::format("the endpoint did not answer with the transaction's hash, but with {}",
                                   quote(answer->text(), 100)),
            .reach = Reach::kUnknown,
            .answers = 1};
  }
  const auto& error = answer.error();
  const auto code = rpc_code(error);
  SendResult result;
  result.outcome = code ? classify_submit_error(*code, error.message) : SubmitClass::kTransient;
  result.message = error.message;
  result.reach = leaves_doubt(result.outcome) ? Reach::kUnknown : reach_of(error);
  result.no_answer = !code;
  result.answers = code ? 1 : 0;
  return result;
}

}  // namespace

Error endpoints_behind(std::int64_t wanted, std::int64_t reached) {
  return unavailable("endpoint_behind",
                     fmt::format("block {} is known, but the endpoints that answer are at {}", wanted, reached));
}

EvmConnector::EvmConnector(JsonRpcClient& rpc, std::int64_t chain_id, JsonRpcClient* submit)
    : rpc_(rpc),
      submit_(submit != nullptr ? *submit : rpc),
      chain_id_(chain_id),
      broadcasts_(rpc.executor(), "broadcasts", kMostBroadcasts),
      lacks_block_receipts_(rpc.endpoint_count(), false) {}

awaitable<Result<RpcValue>> EvmConnector::ask(std::string method, boost::json::array params, Endpoint endpoint) {
  RpcCall question{std::move(method), std::move(params)};
  RpcCallOptions options;
  options.endpoint = endpoint;
  co_return co_await rpc_.call(std::move(question), options);
}

awaitable<Result<RpcValue>> EvmConnector::ask_any(std::string method, boost::json::array params) {
  Result<RpcValue> answer = fail(unavailable("rpc_unavailable", "every RPC endpoint is on another chain"));
  for (const auto endpoint : rpc_.candidates()) {
    answer = co_await ask(method, params, endpoint);
    if (answer) break;
  }
  co_return answer;
}

awaitable<std::vector<Result<RpcValue>>> EvmConnector::ask_all(std::vector<RpcCall> calls, Endpoint endpoint) {
  RpcCallOptions options;
  options.endpoint = endpoint;
  if (calls.size() != 1) co_return co_await rpc_.batch(std::move(calls), options);
  std::vector<Result<RpcValue>> answers;
  answers.push_back(co_await rpc_.call(std::move(calls.front()), options));
  co_return answers;
}

Result<std::optional<Block>> EvmConnector::read_block(Result<RpcValue> answer) const {
  auto block = read(std::move(answer), parse_block);
  if (block && *block && !bloom_covers_all_logs(chain_id_)) (*block)->header.logs_bloom.reset();
  return block;
}

awaitable<Result<Block>> EvmConnector::block(BlockTag tag, Endpoint endpoint) {
  auto answer = co_await ask("eth_getBlockByNumber", {name_of(tag), false}, endpoint);
  auto block = read_block(std::move(answer));
  if (!block) co_return fail(std::move(block.error()));
  if (!*block) {
    co_return fail(Error{
        ErrorKind::kUnprocessable, "rpc_error", fmt::format("the endpoint has no {} block", name_of(tag)), {}, {}});
  }
  if (tag == BlockTag::kLatest) rpc_.note_head((*block)->endpoint, (*block)->header.number);
  co_return std::move(**block);
}

awaitable<Result<HeadNumber>> EvmConnector::head_reaching(std::int64_t number) {
  Error last = unavailable("rpc_unavailable", "every RPC endpoint is on another chain");
  std::optional<std::int64_t> reached;
  for (const auto endpoint : rpc_.candidates()) {
    const auto head = co_await head_number(endpoint);
    if (head && head->number >= number) co_return head;
    if (head) {
      reached = std::max(reached, std::optional(head->number));
    } else {
      last = head.error();
    }
  }
  co_return fail(reached ? endpoints_behind(number, *reached) : last);
}

Endpoint EvmConnector::endpoint_with(std::int64_t number) const {
  for (const auto endpoint : rpc_.candidates()) {
    const auto head = rpc_.endpoint_status(endpoint).head;
    if (head && *head >= number) return endpoint;
  }
  return std::nullopt;
}

awaitable<Result<std::vector<Block>>> EvmConnector::blocks(std::int64_t first, std::size_t count, Endpoint endpoint) {
  std::vector<Block> found;
  while (found.size() < count) {
    std::vector<RpcCall> calls;
    const auto part = std::min(kBlocksAtOnce, count - found.size());
    const auto start = first + static_cast<std::int64_t>(found.size());
    calls.reserve(part);
    for (std::size_t i = 0; i < part; ++i) {
      calls.push_back({"eth_getBlockByNumber", {hex(start + static_cast<std::int64_t>(i)), false}});
    }
    auto answers = co_await ask_all(std::move(calls), endpoint);
    for (auto& answer : answers) {
      auto block = read_block(std::move(answer));
      const auto wanted = first + static_cast<std::int64_t>(found.size());
      if (block && *block && (*block)->header.number != wanted) {
        block = fail(mismatched_result(fmt::format("asked for block {}, got {}", wanted, (*block)->header.number)));
      }
      if (!block && found.empty()) co_return fail(std::move(block.error()));
      // Stop at the first block that the endpoint does not have or that another endpoint answered.
      if (!block || !*block || (endpoint && (*block)->endpoint != *endpoint)) co_return found;
      endpoint = (*block)->endpoint;
      found.push_back(std::move(**block));
    }
  }
  co_return found;
}

awaitable<Result<std::optional<Block>>> EvmConnector::block_by_hash(std::string hash, Endpoint endpoint) {
  auto answer = co_await ask("eth_getBlockByHash", {hash, false}, endpoint);
  auto block = read_block(std::move(answer));
  if (block && *block && (*block)->header.hash != hash) {
    co_return fail(mismatched_result(fmt::format("asked for block {}, got {}", hash, (*block)->header.hash)));
  }
  co_return block;
}

awaitable<Result<std::optional<std::vector<Receipt>>>> EvmConnector::block_receipts(
    const std::string& block_hash, const std::vector<std::string>& tx_hashes, std::size_t endpoint) {
  auto answer = co_await ask("eth_getBlockReceipts", {block_hash}, endpoint);
  if (!answer && answer.error().code == "rpc_error") {
    if (means_no_such_method(answer.error())) lacks_block_receipts_.at(endpoint) = true;
    co_return std::nullopt;
  }
  const std::unordered_set<std::string> wanted(tx_hashes.begin(), tx_hashes.end());
  const auto parse = [&](const RpcValue& value) { return parse_block_receipts(value, wanted); };
  co_return read(std::move(answer), parse);
}

awaitable<Result<std::vector<Receipt>>> EvmConnector::receipts_in_block(std::string block_hash,
                                                                        std::vector<std::string> tx_hashes,
                                                                        std::size_t endpoint) {
  if (tx_hashes.size() > kFewReceipts && !lacks_block_receipts_.at(endpoint)) {
    auto all = co_await block_receipts(block_hash, tx_hashes, endpoint);
    if (all && *all) co_return in_block(std::move(**all), block_hash);
    if (!all && all.error().code != "rpc_unavailable") co_return fail(std::move(all.error()));
  }
  auto found = co_await single_receipts(tx_hashes, endpoint);
  if (found) co_return in_block(std::move(*found), block_hash);
  if (found.error().code != "rpc_unavailable" || endpoint_count() == 1) co_return found;
  // The endpoint does not answer. Another one's receipts are as good if they name the same block. If any is missing,
  // that endpoint may just lag, so its receipts are not used.
  auto others = co_await single_receipts(tx_hashes, std::nullopt);
  if (!others) co_return found;
  auto same = in_block(std::move(*others), block_hash);
  if (same.size() != tx_hashes.size()) co_return found;
  co_return same;
}

awaitable<Result<std::vector<Receipt>>> EvmConnector::single_receipts(const std::vector<std::string>& tx_hashes,
                                                                      Endpoint endpoint) {
  auto singles = co_await receipts(tx_hashes, endpoint);
  std::vector<Receipt> found;
  for (auto& single : singles) {
    if (!single) co_return fail(std::move(single.error()));
    if (*single) found.push_back(std::move(**single));
  }
  co_return found;
}

awaitable<std::vector<Result<std::optional<Receipt>>>> EvmConnector::receipts(std::vector<std::string> tx_hashes,
                                                                              Endpoint endpoint) {
  std::vector<RpcCall> calls;
  calls.reserve(tx_hashes.size());
  for (const auto& hash : tx_hashes) calls.push_back({"eth_getTransactionReceipt", {hash}});
  auto answers = co_await ask_all(std::move(calls), endpoint);
  auto results = read_all(std::move(answers), parse_receipt);
  require_hashes(results, tx_hashes, "the receipt of", [](const Receipt& receipt) { return receipt.tx_hash; });
  co_return results;
}

awaitable<Result<std::optional<TransactionInfo>>> EvmConnector::transaction(std::string tx_hash, Endpoint endpoint) {
  std::vector<std::string> one{std::move(tx_hash)};
  auto results = co_await transactions(std::move(one), endpoint);
  co_return std::move(results.front());
}

awaitable<std::vector<Result<std::optional<TransactionInfo>>>> EvmConnector::transactions(
    std::vector<std::string> tx_hashes, Endpoint endpoint) {
  std::vector<RpcCall> calls;
  calls.reserve(tx_hashes.size());
  for (const auto& hash : tx_hashes) calls.push_back({"eth_getTransactionByHash", {hash}});
  auto answers = co_await ask_all(std::move(calls), endpoint);
  auto results = read_all(std::move(answers), parse_transaction);
  require_hashes(results, tx_hashes, "transaction", [](const TransactionInfo& info) { return info.hash; });
  co_return results;
}

awaitable<std::vector<SendResult>> EvmConnector::send(std::vector<std::string> raw) {
  std::vector<SendResult> results;
  results.reserve(raw.size());
  while (results.size() < raw.size()) {
    // Servers refuse requests over some megabytes, so send as many as fit, but at least one.
    std::vector<std::string> part;
    std::size_t bytes = 0;
    for (auto i = results.size(); i < raw.size() && (part.empty() || bytes + raw[i].size() <= kMaxSendBytes); ++i) {
      bytes += raw[i].size();
      part.push_back(std::move(raw[i]));
    }
    auto answers = co_await broadcast(std::move(part));
    std::ranges::move(answers, std::back_inserter(results));
  }
  co_return results;
}

// First the healthy endpoints, all at once. The others get what these did not answer, or refuse for good: one
// endpoint's refusal ends no transaction while another one was not asked.
awaitable<std::vector<SendResult>> EvmConnector::broadcast(std::vector<std::string> raw) {
  auto first = submit_.healthy();
  auto others = submit_.candidates();
  if (others.empty()) co_return co_await send_to(std::move(raw), std::nullopt);  // says why
  std::erase_if(others, [&](std::size_t endpoint) { return std::ranges::find(first, endpoint) != first.end(); });
  if (first.empty()) std::swap(first, others);
  auto results = co_await send_to_all(raw, std::move(first));
  std::vector<std::string> again;
  std::vector<std::size_t> place;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (!results[i].no_answer && !is_refused_for_good(results[i].outcome)) continue;
    again.push_back(std::move(raw[i]));
    place.push_back(i);
  }
  if (!again.empty() && !others.empty()) {
    const auto late = co_await send_to_all(std::move(again), std::move(others));
    for (std::size_t k = 0; k < place.size(); ++k) results[place[k]] = merge_answers({results[place[k]], late[k]});
  }
  for (auto& result : results) result.all_answered = result.answers == submit_.endpoint_count();
  co_return results;
}

awaitable<std::vector<SendResult>> EvmConnector::send_to(std::vector<std::string> raw, Endpoint endpoint) {
  std::vector<RpcCall> calls;
  calls.reserve(raw.size());
  for (const auto& one : raw) calls.push_back({"eth_sendRawTransaction", {one}});
  RpcCallOptions options;
  options.endpoint = endpoint;
  const auto answers = co_await submit_.batch(std::move(calls), options);
  std::vector<SendResult> results;
  for (std::size_t i = 0; i < raw.size(); ++i) results.push_back(send_result(answers[i], raw[i]));
  co_return results;
}

// Too many broadcasts are unanswered. It certainly reached no endpoint.
static SendResult not_sent() {
  return {.outcome = SubmitClass::kTransient,
          .message = "too many broadcasts are unanswered",
          .reach = Reach::kNowhere,
          .no_answer = true};
}

// The answers of several endpoints to the same transactions. Shared with the requests, which may outlive the caller.
struct EvmConnector::Broadcast {
  Broadcast(Executor home, std::size_t transactions, std::size_t endpoints)
      : answers(transactions), left(endpoints), done(home) {}

  void add(const std::vector<SendResult>& results) {
    for (std::size_t i = 0; i < results.size(); ++i) answers[i].push_back(results[i]);
    --left;
    if (left == 0 || std::ranges::all_of(answers, is_accepted)) done.complete(true);
  }

  std::vector<std::vector<SendResult>> answers;  // by transaction
  std::size_t left;                              // endpoints that have not answered
  Completion<bool> done;
};

awaitable<std::vector<SendResult>> EvmConnector::send_to_all(std::vector<std::string> raw,
                                                             std::vector<std::size_t> endpoints) {
  const auto shared = std::make_shared<Broadcast>(rpc_.executor(), raw.size(), endpoints.size());
  const auto ask_one = [](EvmConnector& self, std::vector<std::string> bytes, std::size_t endpoint,
                          std::shared_ptr<Broadcast> broadcast) -> awaitable<> {
    const auto size = bytes.size();
    std::vector<SendResult> results(size);  // unknown, should the request end without an answer
    std::exception_ptr failure;
    try {
      results = co_await self.send_to(std::move(bytes), endpoint);
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    broadcast->add(results);
    if (failure) std::rethrow_exception(failure);
  };
  bool asked = false;
  for (const auto endpoint : endpoints) {
    if (broadcasts_.spawn(ask_one(*this, raw, endpoint, shared))) {
      asked = true;
    } else {
      shared->add({});  // too many are unanswered: the others have to do
    }
  }
  if (!asked) co_return std::vector<SendResult>(raw.size(), not_sent());
  co_await shared->done.wait();
  std::vector<SendResult> results;
  results.reserve(raw.size());
  for (const auto& answers : shared->answers) results.push_back(merge_answers(answers));
  co_return results;
}

awaitable<std::vector<Result<std::int64_t>>> EvmConnector::nonces(std::vector<std::string> addresses, NonceTag tag,
                                                                  Endpoint endpoint) {
  const std::string_view at = tag == NonceTag::kPending ? "pending" : "latest";
  std::vector<RpcCall> calls;
  calls.reserve(addresses.size());
  for (const auto& address : addresses) calls.push_back({"eth_getTransactionCount", {address, at}});
  auto answers = co_await ask_all(std::move(calls), endpoint);
  co_return read_all(std::move(answers), parse_int64_result);
}

awaitable<Result<std::int64_t>> EvmConnector::nonce_at(std::string address, std::int64_t block_number,
                                                       Endpoint endpoint) {
  auto answer = co_await ask("eth_getTransactionCount", {address, hex(block_number)}, endpoint);
  co_return read(std::move(answer), parse_int64_result);
}

awaitable<std::vector<Result<Uint256>>> EvmConnector::balances(std::vector<std::string> addresses) {
  std::vector<RpcCall> calls;
  calls.reserve(addresses.size());
  for (const auto& address : addresses) calls.push_back({"eth_getBalance", {address, "latest"}});
  auto answers = co_await ask_all(std::move(calls), std::nullopt);
  co_return read_all(std::move(answers), parse_uint256_result);
}

awaitable<Result<Uint256>> EvmConnector::estimate_gas(CallRequest call) {
  auto answer = co_await ask("eth_estimateGas", {call_object(call)}, std::nullopt);
  if (!answer) co_return fail(call_error(std::move(answer.error())));
  co_return parse_uint256_result(*answer);
}

awaitable<Result<Bytes>> EvmConnector::call(CallRequest call, std::optional<std::int64_t> block_number,
                                            Endpoint endpoint) {
  std::vector<CallRequest> one;
  one.push_back(std::move(call));
  auto results = co_await calls(std::move(one), block_number, endpoint);
  co_return std::move(results.front());
}

awaitable<std::vector<Result<Bytes>>> EvmConnector::calls(std::vector<CallRequest> wanted,
                                                          std::optional<std::int64_t> block_number, Endpoint endpoint) {
  const auto at = detail::block_parameter(block_number);
  std::vector<RpcCall> questions;
  questions.reserve(wanted.size());
  for (const auto& call : wanted) questions.push_back({"eth_call", {call_object(call), at}});
  auto answers = co_await ask_all(std::move(questions), endpoint);
  for (auto& answer : answers) {
    if (!answer) answer = fail(call_error(std::move(answer.error())));
  }
  co_return read_all(std::move(answers), parse_bytes_result);
}

awaitable<Result<Bytes>> EvmConnector::code(std::string address, std::optional<std::int64_t> block_number,
                                            Endpoint endpoint) {
  auto answer = co_await ask("eth_getCode", {address, detail::block_parameter(block_number)}, endpoint);
  co_return read(std::move(answer), parse_bytes_result);
}

awaitable<Result<FeeHistory>> EvmConnector::fee_history(std::uint32_t block_count, double percentile,
                                                        Endpoint endpoint) {
  boost::json::value wanted = percentile;
  if (std::trunc(percentile) == percentile) wanted = static_cast<std::int64_t>(percentile);  // 25, not 2.5E1
  boost::json::array params{hex(block_count), "latest", boost::json::array{wanted}};
  auto answer = endpoint ? co_await ask("eth_feeHistory", std::move(params), endpoint)
                         : co_await ask_any("eth_feeHistory", std::move(params));
  co_return read(std::move(answer), parse_fee_history);
}

awaitable<Result<Uint256>> EvmConnector::gas_price(Endpoint endpoint) {
  auto answer = endpoint ? co_await ask("eth_gasPrice", {}, endpoint) : co_await ask_any("eth_gasPrice", {});
  co_return read(std::move(answer), parse_uint256_result);
}

awaitable<Result<bool>> EvmConnector::syncing(Endpoint endpoint) {
  auto answer = co_await ask("eth_syncing", {}, endpoint);
  if (!answer) co_return fail(std::move(answer.error()));
  co_return answer->text() != "false";  // otherwise an object that says how far it is
}

}  // namespace fencepost::evm
