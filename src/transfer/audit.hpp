// Proves on live data that no money was made, lost or counted twice (economy.fn_audit in
// db/migrations/0008_transfer_faces.sql). It reads every table of the economy, at one moment, and locks nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/pool.hpp"

namespace fencepost::transfer {

struct AuditFinding {
  std::string check;
  std::int64_t wrong = 0;              // 0: as it should be
  std::optional<std::string> example;  // one of those that are wrong
};

// One for each check, also for those that hold. Throws as Connection::run does.
awaitable<std::vector<AuditFinding>> audit(pg::Pool& pool);

}  // namespace fencepost::transfer
