// A StubChain's JSON-RPC 2.0 face: text in, text out, batches too. The server in front of it is StubChainServer; tests
// that need no network call `answer`.
//
// Methods: eth_chainId, eth_blockNumber, eth_getBlockByNumber, eth_getBlockByHash (hashes of transactions only),
// eth_getTransactionReceipt, eth_getBlockReceipts, eth_getTransactionByHash, eth_getTransactionCount, eth_getBalance,
// eth_sendRawTransaction, eth_estimateGas, eth_call, eth_feeHistory, eth_gasPrice, eth_syncing. Blocks are named by
// number, by earliest, latest, pending, safe or finalized, and where a node takes it, by hash.
//
// A call whose data begins with 0xfe reverts with Error("the stub says no").
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "tests/support/stub_chain.hpp"

namespace fencepost::test {

class StubChainRpc {
 public:
  // The chain outlives it.
  explicit StubChainRpc(StubChain& chain) : chain_(chain) {}

  // To one request or a batch. Any thread.
  std::string answer(std::string_view body);
  // As a node that has lost its database would: an error to each call, inside a good answer.
  std::string refuse(std::string_view body);

  // Calls since the start or the last reset, each in a batch counted; those to unknown methods too.
  std::uint64_t calls(const std::string& method) const;
  std::uint64_t calls() const;
  std::map<std::string, std::uint64_t> calls_by_method() const;
  void reset_calls();

 private:
  void answer_one(const boost::json::value& request, std::string& out);
  void count(std::string_view method);

  StubChain& chain_;
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t, std::less<>> calls_;
};

}  // namespace fencepost::test
