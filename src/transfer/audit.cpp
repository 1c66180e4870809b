#include "transfer/audit.hpp"

namespace fencepost::transfer {
namespace {

constexpr pg::Statement kAudit{"transfer_audit", "SELECT check_name, wrong, example FROM economy.fn_audit()"};

}  // namespace

awaitable<std::vector<AuditFinding>> audit(pg::Pool& pool) {
  const auto rows = co_await pool.query(kAudit);
  std::vector<AuditFinding> findings;
  for (const auto row : rows) {
    findings.push_back({.check = row.get<std::string>("check_name"),
                        .wrong = row.get<std::int64_t>("wrong"),
                        .example = row.get<std::optional<std::string>>("example")});
  }
  co_return findings;
}

}  // namespace fencepost::transfer
