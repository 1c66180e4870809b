#include "tx/service/revert_reasons.hpp"

#include <gtest/gtest.h>

#include "evm/fake_chain_test_support.hpp"
#include "runtime/runtime_test_support.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;
using Reasons = std::vector<std::string>;

Error would_revert(const std::string& reason) {
  return Error{ErrorKind::kUnprocessable, "would_revert", "the transaction would fail", {}, {}, {}}.with("revertReason",
                                                                                                         reason);
}

// Knows every transaction, and answers calls by their data.
class Chain : public evm::testing::FakeChain {
 public:
  awaitable<std::vector<Result<std::optional<evm::TransactionInfo>>>> transactions(std::vector<std::string> hashes,
                                                                                   evm::Endpoint) override {
    std::vector<Result<std::optional<evm::TransactionInfo>>> out;
    for (const auto& hash : hashes) {
      evm::TransactionInfo info;
      info.hash = hash;
      info.data = hash;  // so that the call is known again
      info.gas = Uint256(100'000);
      out.emplace_back(hash == "0xlost" ? std::optional<evm::TransactionInfo>() : std::optional(info));
    }
    co_return out;
  }
  awaitable<std::vector<Result<Bytes>>> calls(std::vector<evm::CallRequest> calls, std::optional<std::int64_t> block,
                                              evm::Endpoint endpoint) override {
    if (silent) co_await test::hang();
    EXPECT_EQ(endpoint, 0U);
    std::vector<Result<Bytes>> out;
    for (const auto& call : calls) {
      asked.push_back(call.data + " at " + std::to_string(block.value_or(-1)));
      EXPECT_EQ(call.gas, Uint256(100'000));
      if (call.data == "0xreason") out.push_back(fail(would_revert("no")));
      if (call.data == "0xbare") out.push_back(fail(would_revert("reverted without a reason")));
      if (call.data == "0xspent") out.push_back(fail(unavailable("rpc_error", "out of gas")));
      if (call.data == "0xpruned") out.push_back(fail(unavailable("rpc_error", "missing trie node")));
      if (call.data == "0xfine") out.emplace_back(Bytes{});
    }
    co_return out;
  }

  std::vector<std::string> asked;
  bool silent = false;
};

evm::Receipt failed(const std::string& hash, std::int64_t block = 7, int gas_used = 50'000) {
  evm::Receipt receipt;
  receipt.tx_hash = hash;
  receipt.block_number = block;
  receipt.gas_used = Uint256(gas_used);
  return receipt;
}

TEST(revert_reasons, each_receipt_gets_what_the_chain_says_when_it_is_asked_again) {
  test::on_loop([]() -> awaitable<> {
    Chain chain;
    const auto reasons =
        co_await revert_reasons(chain,
                                {failed("0xreason"), failed("0xbare", 8), failed("0xspent", 7, 100'000),
                                 failed("0xpruned"), failed("0xfine"), failed("0xlost")},
                                1min);
    EXPECT_EQ(reasons, (Reasons{"execution reverted: no", "execution reverted without a reason",
                                "execution reverted: out of gas, all 100000 were used",
                                "execution reverted; the chain does not say why: missing trie node",
                                "execution reverted; the same call succeeds at the end of block 7",
                                "execution reverted; the chain does not say why"}));
    EXPECT_EQ(chain.asked, (Reasons{"0xreason at 7", "0xspent at 7", "0xpruned at 7", "0xfine at 7", "0xbare at 8"}));
  });
}

TEST(revert_reasons, an_endpoint_that_does_not_answer_is_not_waited_for) {
  test::on_loop([]() -> awaitable<> {
    Chain chain;

    chain.silent = true;
    const auto reasons = co_await revert_reasons(chain, {failed("0xreason"), failed("0xbare")}, 1ms);
    EXPECT_EQ(reasons, Reasons(2, "execution reverted; the endpoint did not say why in time"));
  });
}

}  // namespace
}  // namespace fencepost::tx
