#include <algorithm>

#include <fmt/format.h>

#include "evm/connector_read.hpp"
#include "evm/evm_connector.hpp"
#include "evm/reply/block_reply.hpp"
#include "evm/reply/log_reply.hpp"

namespace fencepost::evm {
namespace {

// Nodes end a query for logs by themselves, mostly after 10 seconds, and that answer says that the range is too large.
constexpr std::chrono::milliseconds kLogsTimeout{30'000};

Result<std::optional<BlockHeader>> header_of(Result<std::optional<Block>> block) {
  if (!block) return fail(std::move(block.error()));
  if (!*block) return std::nullopt;
  return std::move((*block)->header);
}

}  // namespace

awaitable<std::vector<Result<std::optional<BlockHeader>>>> EvmConnector::headers_by_hash(
    std::vector<std::string> hashes, Endpoint endpoint) {
  std::vector<RpcCall> calls;
  calls.reserve(hashes.size());
  for (const auto& hash : hashes) calls.push_back({"eth_getBlockByHash", {hash, false}});
  auto answers = co_await ask_all(std::move(calls), endpoint);
  std::vector<Result<std::optional<BlockHeader>>> headers;
  headers.reserve(answers.size());
  for (auto& answer : answers) headers.push_back(header_of(read_block(std::move(answer))));
  detail::require_hashes(headers, hashes, "block", [](const BlockHeader& header) { return header.hash; });
  co_return headers;
}

awaitable<Result<HeadNumber>> EvmConnector::head_number(Endpoint endpoint) {
  auto answer = co_await ask("eth_blockNumber", {}, endpoint);
  if (!answer) co_return fail(std::move(answer.error()));
  const auto number = parse_int64_result(*answer);
  if (!number) co_return fail(number.error());
  rpc_.note_head(answer->endpoint(), *number);
  co_return HeadNumber{*number, answer->endpoint()};
}

awaitable<Result<RpcValue>> EvmConnector::ask_logs(boost::json::object blocks, const LogFilter& filter,
                                                   RpcCallOptions options) {
  // To a node, no address means the logs of all contracts.
  if (filter.addresses.empty()) throw Exception(internal("no_addresses", "logs are asked for without a contract"));
  blocks["address"] = boost::json::array(filter.addresses.begin(), filter.addresses.end());
  if (!filter.topics.empty()) {
    boost::json::array places;
    places.emplace_back(boost::json::array(filter.topics.begin(), filter.topics.end()));
    blocks["topics"] = std::move(places);
  }
  RpcCall question{"eth_getLogs", {std::move(blocks)}};
  options.timeout = std::max(kLogsTimeout, rpc_.timeout());
  co_return co_await rpc_.call(std::move(question), options);
}

awaitable<Result<std::vector<Log>>> EvmConnector::logs_in_block(std::string block_hash, LogFilter filter,
                                                                Endpoint endpoint) {
  boost::json::object blocks{{"blockHash", block_hash}};
  RpcCallOptions options;
  options.endpoint = endpoint;
  auto answer = co_await ask_logs(std::move(blocks), filter, options);
  if (!answer) co_return fail(std::move(answer.error()));
  auto logs = parse_block_logs(*answer, block_hash, filter);
  if (!logs || !logs->empty()) co_return logs;
  // Some nodes have no logs for a block that they do not have, instead of an error.
  const auto block = co_await block_by_hash(block_hash, answer->endpoint());
  if (!block) co_return fail(block.error());
  if (!*block) {
    co_return fail(detail::mismatched_result(
        fmt::format("the endpoint answers that block {} has no such logs, but does not have the block", block_hash)));
  }
  co_return logs;
}

awaitable<Result<Logs>> EvmConnector::logs_in_range(std::int64_t first, std::int64_t last, LogFilter filter,
                                                    Endpoint endpoint) {
  boost::json::object blocks{{"fromBlock", detail::hex(first)}, {"toBlock", detail::hex(last)}};
  RpcCallOptions options;
  options.endpoint = endpoint;
  options.bare_limit_is_answer = last > first;  // one block cannot be split: then it can only be a quota
  auto answer = co_await ask_logs(std::move(blocks), filter, options);
  if (!answer) co_return fail(std::move(answer.error()));
  auto logs = parse_range_logs(*answer, first, last, filter);
  if (!logs) co_return fail(std::move(logs.error()));
  co_return Logs{std::move(*logs), answer->endpoint()};
}

}  // namespace fencepost::evm
