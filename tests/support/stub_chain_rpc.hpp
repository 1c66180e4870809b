// JSON-RPC 2.0 for a StubChain: text in, text out, batches too. StubChainServer is the server in front of it. Tests
// without a network call `answer`.
//
// Methods: eth_chainId, eth_blockNumber, eth_getBlockByNumber, eth_getBlockByHash (hashes of transactions only),
// eth_getTransactionReceipt, eth_getBlockReceipts, eth_getTransactionByHash, eth_getTransactionCount, eth_getBalance,
// eth_sendRawTransaction, eth_estimateGas, eth_call, eth_feeHistory, eth_gasPrice, eth_syncing. A block is named
// by its number, by earliest, latest, pending, safe or finalized, and by its hash where a node accepts that.
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
  // The chain must outlive this object.
  explicit StubChainRpc(StubChain& chain) : chain_(chain) {}

  // Answers one request or a batch. Any thread.
  std::string answer(std::string_view body);
  // Answers every call with an error inside a valid response, like a node that has lost its database.
  std::string refuse(std::string_view body);

  // Calls since the start or the last reset. Counts each call of a batch, and calls of unknown methods.
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
