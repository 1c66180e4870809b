#include "transfer/transfer_manager.hpp"

#include "runtime/log.hpp"

namespace fencepost::transfer {

TransferManager::TransferManager(Runtime& runtime, pg::Database& database, pg::Listener& listener,
                                 const TransferOptions& options, Metrics& metrics)
    : database_(database),
      metrics_(metrics),
      audits_(options.audit_interval.count() > 0),
      announcer_(runtime.executor(0), database, metrics),
      service_(runtime, database, options, metrics),
      coordinator_(runtime.executor(0), database, options, metrics),
      telemetry_(listener, coordinator_),
      auditor_(
          runtime.executor(0),
          {.name = "transfer_audit", .interval = options.audit_interval, .stop_grace = std::chrono::milliseconds(0)},
          [this] { return audit_all(); }, metrics) {
  service_.on_events([this] { announcer_.announce(); });
  service_.on_due([this](bool here_only) {
    if (here_only) {
      coordinator_.wake();
    } else {
      coordinator_.wake_everywhere();
    }
  });
}

void TransferManager::start() {
  announcer_.start();
  service_.start();
  coordinator_.start();
  if (audits_) auditor_.start();
}

awaitable<> TransferManager::stop(std::chrono::milliseconds grace) {
  co_await service_.stop(grace / 2);
  if (audits_) co_await auditor_.stop();
  co_await coordinator_.stop();
  co_await announcer_.stop();
}

awaitable<Worker::Next> TransferManager::audit_all() {
  for (const auto& finding : co_await audit(database_.pool())) {
    metrics_.gauge("transfer_audit_wrong", "Rows that the last audit found wrong", {{"check", finding.check}})
        .Set(static_cast<double>(finding.wrong));
    if (finding.wrong > 0) {
      log::error("the audit found wrong rows",
                 {{"check", finding.check}, {"wrong", finding.wrong}, {"example", finding.example.value_or("")}});
    }
  }
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::transfer
