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

std::optional<AnnouncedBlock> read_announced(const pg::Row& row) {
  if (row.is_null("told_block")) return std::nullopt;
  return AnnouncedBlock{row.get<std::int64_t>("told_block"), row.get<std::string>("told_hash")};
}

std::optional<std::chrono::milliseconds> read_seconds(const pg::Row& row, std::string_view column) {
  const auto seconds = row.get<std::optional<double>>(column);
  if (!seconds) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
}

}  // namespace fencepost::tx
