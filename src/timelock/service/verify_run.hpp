// Verifies contract after contract, within a time that a request may take. What is left continues from a cursor, on
// any node: there is no run whose state could be lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "timelock/service/timelock_service.hpp"
#include "timelock/service/verifier.hpp"

namespace fencepost::timelock {

struct VerifyCursor {
  ContractKey contract;
  std::string flow_id;  // the last one that was verified; empty: the contract is done
};

struct VerifyScope {
  std::optional<std::int64_t> chain_id;
  std::optional<std::vector<std::string>> only;  // contracts; none: all
  std::optional<VerifyCursor> after;
};

struct NotChecked {
  ContractKey contract;
  std::int64_t flows = 0;
  std::string reason;
};

struct VerifyAnswer {
  std::int64_t contracts = 0;  // that were begun
  std::int64_t flows = 0;
  std::int64_t compared = 0;
  std::int64_t lagging = 0;
  std::int64_t difference_count = 0;
  std::vector<Difference> differences;  // at most kMaxDifferences of them
  std::vector<NotChecked> not_checked;
  std::optional<VerifyCursor> next;  // nullopt: everything was verified
};

inline constexpr std::size_t kMaxDifferences = 1'000;

// Ends with the first page after `budget`. Any loop.
awaitable<VerifyAnswer> verify(TimelockService& service, VerifyScope scope, std::chrono::milliseconds budget);

}  // namespace fencepost::timelock
