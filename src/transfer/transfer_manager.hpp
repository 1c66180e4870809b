// The parts of the economy that a node starts and stops together.
#pragma once

#include "outbox/event_announcer.hpp"
#include "pg/listener.hpp"
#include "transfer/audit.hpp"
#include "transfer/telemetry_listener.hpp"
#include "transfer/transfer_event_pool_coordinator.hpp"
#include "transfer/transfer_service.hpp"

namespace fencepost::transfer {

class TransferManager {
 public:
  // Subscribes to the listener. Requires: the listener has not started.
  TransferManager(Runtime& runtime, pg::Database& database, pg::Listener& listener, const TransferOptions& options,
                  Metrics& metrics);

  // Call both on loop 0.
  void start();
  awaitable<> stop(std::chrono::milliseconds grace);

  TransferService& service() { return service_; }

 private:
  awaitable<Worker::Next> audit_all();

  pg::Database& database_;
  Metrics& metrics_;
  bool audits_;
  outbox::EventAnnouncer announcer_;
  TransferService service_;
  TransferEventPoolCoordinator coordinator_;
  TelemetryListener telemetry_;
  Worker auditor_;
};

}  // namespace fencepost::transfer
