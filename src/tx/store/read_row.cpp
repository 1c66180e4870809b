#include "tx/store/read_row.hpp"

#include <cstdint>
#include <string>

namespace fencepost::tx {

SignerKey read_key(const pg::Row& row) {
  return {row.get<std::int64_t>("chain_id"), row.get<std::string>("signer")};
}

SignerLease read_lease(const pg::Row& row) {
  return {read_key(row), row.get<std::int64_t>("token")};
}

TxState read_state(const pg::Row& row) {
  return kManagedTx.find(row.get<std::string_view>("state")).value();
}

SubState read_sub_state(const pg::Row& row) {
  if (row.is_null("sub_state")) return SubState::kNone;
  return kSubStates.find(row.get<std::string_view>("sub_state")).value_or(SubState::kNone);
}

AttemptKind read_attempt_kind(const pg::Row& row, std::string_view column) {
  return kAttemptKinds.find(row.get<std::string_view>(column)).value();
}

std::optional<AttemptOutcome> read_attempt_outcome(const pg::Row& row) {
  if (row.is_null("outcome")) return std::nullopt;
  const AttemptOutcome outcome = kAttemptOutcomes.find(row.get<std::string_view>("outcome")).value();
  return outcome;
}

std::optional<AnnouncedBlock> read_announced(const pg::Row& row) {
  if (row.is_null("announced_block")) return std::nullopt;
  return AnnouncedBlock{row.get<std::int64_t>("announced_block"), row.get<std::string>("announced_hash")};
}

std::optional<std::chrono::milliseconds> read_seconds(const pg::Row& row, std::string_view column) {
  const auto seconds = row.get<std::optional<double>>(column);
  if (!seconds) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
}

std::optional<ReconcileReason> read_reconcile_reason(const pg::Row& row) {
  const auto name = row.get<std::optional<std::string_view>>("reconcile_reason");
  return name ? kReconcileReasons.find(*name) : std::nullopt;
}

}  // namespace fencepost::tx
