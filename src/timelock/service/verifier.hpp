// Checks the flows of one chain: folds their events again, and asks the contracts.
//
// A page is read in one snapshot, with the block up to which the chain was scanned, and without locks. The contracts
// are asked as of that very block, at an endpoint that has it on its branch. Where that is impossible the page says
// why: it never reports a difference that only comes from another block.
//
// Pinned to the chain's loop.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evm/chain.hpp"
#include "pg/database.hpp"
#include "timelock/service/flow_comparison.hpp"
#include "timelock/store/scan_store.hpp"
#include "timelock/store/timelock_store.hpp"

namespace fencepost::timelock {

struct VerifiedPage {
  std::int64_t flows = 0;     // ids that were compared with their events
  std::int64_t compared = 0;  // of them, with the contract, too
  std::int64_t lagging = 0;   // generations that the refresher moves next
  std::vector<Difference> differences;
  std::int64_t not_checked = 0;     // ids that were not compared with the contract, although they have a flow
  std::string reason;               // why; empty when there are none
  std::optional<std::string> next;  // pass it as `after` of the next page; nullopt: this was the last
};

class Verifier {
 public:
  Verifier(evm::Chain& chain, pg::Database& database, std::int64_t confirmations)
      : chain_(chain), database_(database), confirmations_(confirmations) {}

  static constexpr std::size_t kPage = 500;  // ids

  // The ids of a contract after `after`; "" is the first page. An empty page if the contract is no longer watched.
  // Throws as pg::Pool does; what a chain's endpoint refuses is in `reason`.
  awaitable<VerifiedPage> page(ContractKey contract, Standard standard, std::string after);

 private:
  struct Snapshot {
    ScanPoint point;
    std::string unscanned;  // why the flows are not as of that block; empty: they are
    std::map<FlowKey, FlowInput> inputs;
  };
  struct Asked {
    std::vector<Difference> differences;
    std::vector<const FlowInput*> differing;  // whose they are
    std::int64_t not_answered = 0;
    std::string reason;  // of the last that was not answered
  };
  awaitable<std::optional<Snapshot>> read(ContractKey contract, Standard standard, std::string after);
  awaitable<> ask_contract(const Snapshot& snapshot, const std::string& address, VerifiedPage& page);
  awaitable<Asked> ask(std::vector<const FlowInput*> flows, std::string address, std::int64_t block,
                       std::size_t endpoint);
  // The endpoint whose branch has the block; otherwise why there is none.
  awaitable<std::expected<std::size_t, std::string>> endpoint_with(const ScanPoint& point, evm::Endpoint endpoint);

  evm::Chain& chain_;
  pg::Database& database_;
  std::int64_t confirmations_;
};

}  // namespace fencepost::timelock
