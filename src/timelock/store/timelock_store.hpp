// The watched contracts: the tables timelock, compound_timelocks and openzeppelin_timelocks. Functions throw as
// pg::Pool does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/uint256.hpp"
#include "pg/pool.hpp"
#include "timelock/model/standard.hpp"
#include "timelock/store/scan_store.hpp"

namespace fencepost::timelock {

struct ContractKey {
  std::int64_t chain_id = 0;
  std::string address;  // lowercase

  friend auto operator<=>(const ContractKey&, const ContractKey&) = default;
};

// What a contract says about itself.
struct ContractRules {
  Uint256 delay;                       // OpenZeppelin: minDelay
  std::optional<Uint256> grace;        // Compound only
  std::optional<std::string> admin;    // Compound: always
  std::optional<std::string> pending;  // Compound: the pending admin

  friend bool operator==(const ContractRules&, const ContractRules&) = default;
};

struct Timelock {
  ContractKey key;
  Standard standard = Standard::kCompound;
  std::string remark;
  ContractRules rules;
  std::int64_t from_block = 0;
  std::int64_t history_next = 0;
  std::int64_t history_last = 0;
  std::optional<TimePoint> history_done_at;
  std::optional<std::string> last_error;     // of the scan of its history
  std::optional<std::int64_t> halted_block;  // nothing from there on is scanned
  std::string created_by;
  TimePoint created_at;

  bool history_done() const { return history_done_at.has_value(); }
};

struct NewTimelock {
  ContractKey key;
  Standard standard = Standard::kCompound;
  std::string remark;
  ContractRules rules;
  std::int64_t from_block = 0;
  std::string created_by;
};

// Starts to watch a contract: its history up to the chain's scanned block, and everything after it. `head` becomes the
// scanned block if nothing was watched on the chain. Finishes a removal of the contract first. nullopt: the contract is
// watched already.
awaitable<std::optional<Timelock>> insert_timelock(pg::Pool& pool, NewTimelock timelock, ScanPoint head);

// Contracts that are being removed (removal_store.hpp) are not found, here and below.
awaitable<std::optional<Timelock>> find_timelock(pg::Pool& pool, ContractKey key);

// In the order of (chain, address), after `after`. No chain: of all chains. `only`: of these addresses.
awaitable<std::vector<Timelock>> list_timelocks(pg::Pool& pool, std::optional<std::int64_t> chain_id,
                                                std::optional<std::vector<std::string>> only,
                                                std::optional<ContractKey> after, std::size_t limit);

// False: there is no such contract.
awaitable<bool> set_remark(pg::Pool& pool, ContractKey key, std::string remark);
// Scans the history again, from `from_block` to the chain's scanned block. False also if that is lower: a history
// without blocks would never be complete. And if `from_block` is below the contract's first, and flows were announced.
awaitable<bool> restart_history(pg::Pool& pool, ContractKey key, std::int64_t from_block);

// Replaces what was read from the contract. `wanted`: rules_wanted before it was read; a change since makes it due
// again.
awaitable<> store_rules(pg::Pool& pool, ContractKey key, Standard standard, ContractRules rules, std::int64_t wanted);

// Keeps the rules as they are: the contract does not answer any more.
awaitable<> keep_rules(pg::Pool& pool, ContractKey key, std::int64_t wanted);

}  // namespace fencepost::timelock
