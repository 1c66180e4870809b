// A chain that a test controls: several endpoints, each with its own view of the chain, and a store in memory.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "evm/chain_connector.hpp"
#include "evm/header_store.hpp"

namespace fencepost::evm::testing {

// "a7" is block 7 of branch a: its hash in full, and back.
inline std::string hash_of(char branch, std::int64_t number) {
  return fmt::format("0x{}{:063x}", branch, number);
}
inline std::string short_name(const BlockHeader& header) {
  return fmt::format("{}{}", header.hash[2], header.number);
}

// The parent may be on another branch: that is where branches fork.
inline Block make_block(std::int64_t number, char branch, char parent_branch, std::int64_t timestamp = -1) {
  Block block;
  block.header = {number, hash_of(branch, number), number == 0 ? hash_of('0', 0) : hash_of(parent_branch, number - 1),
                  timestamp < 0 ? 1'000'000 + number * 12 : timestamp, Uint256(7)};
  block.transactions = {fmt::format("0xf{}{:062x}", branch, number)};
  return block;
}

class FakeChain : public ChainConnector {
 public:
  struct Node {
    std::vector<Block> chain;  // by number
    bool down = false;
    bool syncing = false;
    bool wrong_chain = false;
    std::int64_t oldest = 0;  // blocks below are gone
    std::vector<Log> logs;    // any order; those of blocks that the chain does not have are not served
  };

  explicit FakeChain(std::size_t endpoints = 1) : nodes(endpoints) {}

  // Adds `count` blocks of that branch at an endpoint. With `from`, first removes the blocks from that number on.
  void grow(std::size_t endpoint, std::int64_t count, char branch = 'a', std::int64_t from = -1,
            std::int64_t timestamp = -1) {
    auto& chain = nodes[endpoint].chain;
    if (from >= 0) chain.resize(static_cast<std::size_t>(from));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto number = static_cast<std::int64_t>(chain.size());
      const char parent = chain.empty() ? branch : chain.back().header.hash[2];
      chain.push_back(make_block(number, branch, parent, timestamp < 0 ? -1 : timestamp + i));
      chain.back().endpoint = endpoint;
    }
  }
  // Gives endpoint `to` the chain of `from` without the last `lag` blocks; it always keeps the genesis.
  void mirror(std::size_t from, std::size_t to, std::size_t lag = 0) {
    nodes[to].chain = nodes[from].chain;
    nodes[to].chain.resize(nodes[to].chain.size() - std::min(lag, nodes[to].chain.size() - 1));
    for (auto& block : nodes[to].chain) block.endpoint = to;
  }
  const Block& head(std::size_t endpoint = 0) const { return nodes[endpoint].chain.back(); }

  std::int64_t chain_id() const override { return 31337; }

  awaitable<Result<Block>> block(BlockTag, Endpoint endpoint) override {
    ++polls;
    if (!endpoint) endpoint = preferred();
    if (!endpoint || nodes[*endpoint].down) co_return fail(unavailable("rpc_unavailable", "no endpoint answered"));
    asked.push_back(*endpoint);
    co_return nodes[*endpoint].chain.back();
  }
  awaitable<Result<std::vector<Block>>> blocks(std::int64_t first, std::size_t count, Endpoint endpoint) override {
    ++fetches;
    largest_fetch = std::max(largest_fetch, count);
    if (!endpoint || nodes[*endpoint].down) co_return fail(unavailable("rpc_unavailable", "no endpoint answered"));
    if (before_fetch) before_fetch();
    const auto& node = nodes[*endpoint];
    std::vector<Block> found;
    for (auto n = first; n < first + static_cast<std::int64_t>(count); ++n) {
      if (n < node.oldest || n >= static_cast<std::int64_t>(node.chain.size())) break;
      found.push_back(node.chain[static_cast<std::size_t>(n)]);
    }
    co_return found;
  }
  awaitable<Result<bool>> syncing(Endpoint endpoint) override { co_return nodes[endpoint.value_or(0)].syncing; }

  awaitable<Result<std::optional<Block>>> block_by_hash(std::string, Endpoint) override { co_return fail(unused()); }
  awaitable<std::vector<Result<std::optional<BlockHeader>>>> headers_by_hash(std::vector<std::string> hashes,
                                                                             Endpoint) override {
    co_return std::vector<Result<std::optional<BlockHeader>>>(hashes.size(), fail(unused()));
  }
  awaitable<Result<HeadNumber>> head_number(Endpoint endpoint) override {
    if (!endpoint) endpoint = preferred();
    if (!endpoint || nodes[*endpoint].down) co_return fail(unavailable("rpc_unavailable", "no endpoint answered"));
    co_return HeadNumber{nodes[*endpoint].chain.back().header.number, *endpoint};
  }
  awaitable<Result<std::vector<Log>>> logs_in_block(std::string block_hash, LogFilter filter,
                                                    Endpoint endpoint) override {
    if (!endpoint) endpoint = preferred();
    if (!endpoint || nodes[*endpoint].down) co_return fail(unavailable("rpc_unavailable", "no endpoint answered"));
    const auto& node = nodes[*endpoint];
    if (std::ranges::find(node.chain, block_hash, [](const Block& block) { return block.header.hash; }) ==
        node.chain.end()) {
      co_return fail(unavailable("bad_rpc_result", "the endpoint does not have the block"));
    }
    co_return logs_of(node, filter, [&](const Log& log) { return log.block_hash == block_hash; });
  }
  awaitable<Result<Logs>> logs_in_range(std::int64_t first, std::int64_t last, LogFilter filter,
                                        Endpoint endpoint) override {
    if (!endpoint) endpoint = preferred();
    if (!endpoint || nodes[*endpoint].down) co_return fail(unavailable("rpc_unavailable", "no endpoint answered"));
    auto logs = logs_of(nodes[*endpoint], filter,
                        [&](const Log& log) { return log.block_number >= first && log.block_number <= last; });
    co_return Logs{std::move(logs), *endpoint};
  }
  awaitable<Result<std::vector<Receipt>>> receipts_in_block(std::string, std::vector<std::string>,
                                                            std::size_t) override {
    co_return fail(unused());
  }
  awaitable<std::vector<Result<std::optional<Receipt>>>> receipts(std::vector<std::string>, Endpoint) override {
    co_return std::vector<Result<std::optional<Receipt>>>{};
  }
  awaitable<Result<std::optional<TransactionInfo>>> transaction(std::string, Endpoint) override {
    co_return fail(unused());
  }
  awaitable<std::vector<Result<std::optional<TransactionInfo>>>> transactions(std::vector<std::string> hashes,
                                                                              Endpoint) override {
    co_return std::vector<Result<std::optional<TransactionInfo>>>(hashes.size(), fail(unused()));
  }
  awaitable<std::vector<SendResult>> send(std::vector<std::string>) override { co_return std::vector<SendResult>{}; }
  awaitable<std::vector<Result<std::int64_t>>> nonces(std::vector<std::string>, NonceTag, Endpoint) override {
    co_return std::vector<Result<std::int64_t>>{};
  }
  awaitable<Result<std::int64_t>> nonce_at(std::string, std::int64_t, Endpoint) override { co_return fail(unused()); }
  awaitable<std::vector<Result<Uint256>>> balances(std::vector<std::string> addresses) override {
    co_return std::vector<Result<Uint256>>(addresses.size(), fail(unused()));
  }
  awaitable<Result<Uint256>> estimate_gas(CallRequest) override { co_return fail(unused()); }
  awaitable<Result<Bytes>> call(CallRequest, std::optional<std::int64_t>, Endpoint) override {
    co_return fail(unused());
  }
  awaitable<std::vector<Result<Bytes>>> calls(std::vector<CallRequest> calls, std::optional<std::int64_t>,
                                              Endpoint) override {
    co_return std::vector<Result<Bytes>>(calls.size(), fail(unused()));
  }
  awaitable<Result<Bytes>> code(std::string, std::optional<std::int64_t>, Endpoint) override {
    co_return fail(unused());
  }
  awaitable<Result<FeeHistory>> fee_history(std::uint32_t, double, Endpoint) override { co_return fail(unused()); }
  awaitable<Result<Uint256>> gas_price(Endpoint) override { co_return fail(unused()); }

  std::size_t endpoint_count() const override { return nodes.size(); }
  EndpointStatus endpoint_status(std::size_t index) const override {
    EndpointStatus status;
    status.wrong_chain = nodes[index].wrong_chain;
    return status;
  }

  std::vector<Node> nodes;
  std::function<void()> before_fetch;
  int polls = 0;    // requests for a head
  int fetches = 0;  // requests for blocks
  std::size_t largest_fetch = 0;
  std::vector<std::size_t> asked;  // endpoints that gave a head

 private:
  template <class Wanted>
  static std::vector<Log> logs_of(const Node& node, const LogFilter& filter, Wanted wanted) {
    std::vector<Log> found;
    for (const auto& log : node.logs) {
      const auto number = static_cast<std::size_t>(log.block_number);
      if (number >= node.chain.size() || node.chain[number].header.hash != log.block_hash) continue;
      if (!wanted(log) || std::ranges::find(filter.addresses, log.address) == filter.addresses.end()) continue;
      const auto first = log.topics.empty() ? std::string() : log.topics.front();
      const bool other = std::ranges::find(filter.topics, first) == filter.topics.end();
      if (filter.topics.empty() || !other) found.push_back(log);
    }
    std::ranges::sort(found, {}, [](const Log& log) { return std::pair(log.block_number, log.log_index); });
    return found;
  }
  static Error unused() { return internal("unused", "a follower does not ask this"); }
  Endpoint preferred() const {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i].down && !nodes[i].wrong_chain) return i;
    }
    return std::nullopt;
  }
};

class FakeStore : public HeaderStore {
 public:
  awaitable<> save(std::int64_t, std::vector<BlockHeader> headers) override {
    if (broken) throw Exception(unavailable("database_down", "the store is broken"));
    for (auto& header : headers) rows.try_emplace({header.number, header.hash}, header);
    co_return;
  }
  awaitable<std::vector<BlockHeader>> recent(std::int64_t, std::int64_t from_number, std::size_t limit) override {
    std::vector<BlockHeader> found;
    for (const auto& [key, header] : rows) {
      if (header.number >= from_number) found.push_back(header);
    }
    if (found.size() > limit) found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(limit));
    co_return found;
  }
  awaitable<std::optional<std::int64_t>> newest(std::int64_t) override {
    co_return rows.empty() ? std::nullopt : std::optional(rows.rbegin()->first.first);
  }
  awaitable<std::size_t> prune(std::int64_t, std::int64_t below_number, std::size_t limit) override {
    std::size_t gone = 0;
    while (gone < limit && !rows.empty() && rows.begin()->first.first < below_number) {
      rows.erase(rows.begin());
      ++gone;
    }
    co_return gone;
  }
  bool has(const std::string& hash) const {
    return std::ranges::any_of(rows, [&](const auto& row) { return row.first.second == hash; });
  }

  std::map<std::pair<std::int64_t, std::string>, BlockHeader> rows;
  bool broken = false;
};

}  // namespace fencepost::evm::testing
