// An endpoint of one node that tells one lie at a time.
#pragma once

#include <string>
#include <vector>

#include "tests/support/fault_plan.hpp"
#include "tests/support/rpc_rewriter.hpp"

namespace fencepost::test {

// Receipts say that each transaction is in this block.
void forge_receipts(RpcRewriter& endpoint, const boost::json::value& block);

class LyingEndpoint {
 public:
  explicit LyingEndpoint(const std::string& url) : chain_(url), proxy_(url) {}

  std::string url() const { return proxy_.url(); }
  // Requires: is_lie(fault.kind). `head` is the chain's.
  void begin(const PlannedFault& fault, std::int64_t head);
  // Tells the truth again. How often the lie was told.
  std::size_t end();

 private:
  void take_away_base_fees();
  void invent_head();
  boost::json::value block(std::int64_t number) const;

  std::string chain_;
  RpcRewriter proxy_;
  std::vector<std::string> held_;
  std::size_t touched_before_ = 0;
};

}  // namespace fencepost::test
