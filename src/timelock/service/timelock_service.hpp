// What users do with watched contracts: add, look, change, remove. Any loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "evm/chain.hpp"
#include "pg/database.hpp"
#include "timelock/store/scan_store.hpp"
#include "timelock/store/timelock_store.hpp"

namespace fencepost::timelock {

class Verifier;

struct ImportRequest {
  ContractKey key;
  std::optional<Standard> standard;  // none: found out from the contract
  std::string remark;
  std::optional<std::int64_t> from_block;  // none: the block of its deployment
  std::string created_by;
};

class TimelockService {
 public:
  struct ChainPart {
    evm::Chain* chain;
    std::function<void()> wake;  // the chain's scanners; any thread
    Verifier* verifier = nullptr;
  };
  TimelockService(pg::Database& database, std::map<std::int64_t, ChainPart> chains)
      : database_(database), chains_(std::move(chains)) {}

  // Errors: kInvalid `unknown_chain`, `bad_from_block`; kUnprocessable as probe_contract; kConflict `timelock_exists`;
  // otherwise as ChainConnector.
  awaitable<Result<Timelock>> import(ImportRequest request);
  // Errors, also below: kNotFound `no_such_timelock`.
  awaitable<Result<Timelock>> get(ContractKey key);
  // nullopt of a member: unchanged. A new from_block scans the history again, from there. Errors: also kInvalid
  // `bad_from_block`; kConflict `history_announced`.
  struct Changes {
    std::optional<std::string> remark;
    std::optional<std::int64_t> from_block;
  };
  awaitable<Result<Timelock>> change(ContractKey key, Changes changes);
  awaitable<Result<void>> remove(ContractKey key);

  pg::Pool& pool() { return database_.pool(); }
  // nullptr, also below: the chain is not configured.
  evm::Chain* find_chain(std::int64_t chain_id) const;
  // To be used on the chain's loop.
  Verifier* find_verifier(std::int64_t chain_id) const;

 private:
  const ChainPart* part(std::int64_t chain_id) const;

  pg::Database& database_;
  std::map<std::int64_t, ChainPart> chains_;
};

}  // namespace fencepost::timelock
