#include "transfer/audit.hpp"

namespace fencepost::transfer {
namespace {

constexpr auto kAuditTime = std::chrono::minutes(10);

constexpr pg::Statement kAudit{"transfer_audit", "SELECT check_name, wrong, example FROM economy.fn_audit()"};

}  // namespace

awaitable<std::vector<AuditFinding>> audit(pg::Pool& pool) {
  // The audit reads every table: it has a session of its own, so that no other query queues behind it.
  const auto connection = co_await pool.acquire();
  const auto results = co_await connection->run(pg::Batch().add(kAudit).statement_timeout(kAuditTime),
                                                {.access = pg::Access::kRead, .timeout = kAuditTime});
  std::vector<AuditFinding> findings;
  for (const auto row : results.back()) {
    findings.push_back({.check = row.get<std::string>("check_name"),
                        .wrong = row.get<std::int64_t>("wrong"),
                        .example = row.get<std::optional<std::string>>("example")});
  }
  co_return findings;
}

}  // namespace fencepost::transfer
