// The fence that every write of a transaction's row stands behind, and how rows of these tables are read.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/uuid.hpp"
#include "pg/batch.hpp"
#include "pg/result.hpp"
#include "tx/model/confirmations.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/state.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kLockRows;
}  // namespace sql

enum class StepOutcome {
  kDone,
  kFenced,  // the lease is not ours any more: drop everything about this signer
  kMoved,   // somebody moved it first; look again
};

// The columns that every fenced write begins with.
struct FencedRows {
  std::vector<std::int64_t> chains;
  std::vector<std::string> signers;
  std::vector<std::int64_t> tokens;
  std::vector<Uuid> ids;

  void add(const SignerLease& lease, const Uuid& id);
};

// A batch that begins with the fence: lease rows locked against takeover, then the transactions in order.
pg::Batch fenced_batch(const std::string& node, const FencedRows& rows);

// Of a row with the column `outcome`.
StepOutcome read_outcome(const pg::Row& row);
// Of rows with the columns chain_id, signer, token; state; told_block, told_hash; seconds as double precision.
SignerLease read_lease(const pg::Row& row);
TxState read_state(const pg::Row& row);
std::optional<AnnouncedBlock> read_announced(const pg::Row& row);
std::optional<std::chrono::milliseconds> read_seconds(const pg::Row& row, std::string_view column);

}  // namespace fencepost::tx
