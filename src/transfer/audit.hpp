// Checks on live data that no money was created, lost or counted twice (economy.fn_audit in
// db/migrations/0008_transfer_faces.sql). Reads every table of the economy in one snapshot and locks nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/pool.hpp"

namespace fencepost::transfer {

struct AuditFinding {
  std::string check;
  std::int64_t wrong = 0;              // number of wrong rows; 0: correct
  std::optional<std::string> example;  // one of the wrong rows
};

// Returns one finding for each check, including the checks that pass. Throws as Connection::run does.
awaitable<std::vector<AuditFinding>> audit(pg::Pool& pool);

}  // namespace fencepost::transfer
