// Judges whether a node can work on a database: facts in, findings out, no I/O. doctor/database_probe.hpp gathers the
// facts.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "outbox/event_partitions.hpp"
#include "outbox/feed/horizon.hpp"
#include "pg/listener.hpp"
#include "pg/migrations.hpp"

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

struct TableRights {
  std::string table;
  std::vector<std::string> missing;  // of SELECT, INSERT, UPDATE, DELETE
};

// Of schema economy. A node that does not own it needs what the role fencepost_economy_node has.
struct EconomyRights {
  bool usable = true;                // the role has all of these
  std::vector<std::string> writers;  // other roles that may change its tables by hand; "": PUBLIC, every role
};

struct DatabaseFacts {
  int version_num = 0;  // 150020
  std::string version;  // "15.20"
  bool standby = false;
  bool read_only = false;  // sessions start read-only, which can happen on a primary too
  std::string role;
  std::optional<std::string> schema;  // none: no schema of the search_path exists or may be used
  bool may_create = false;            // in that schema
  std::vector<TableRights> tables;    // Fencepost's tables that exist, apart from schema economy
  EconomyRights economy;
  std::optional<Error> migrations;  // the error of pg::check_migrations; none: the schema is current
  std::string newest_migration;
  std::chrono::microseconds clock_ahead{0};        // by how much the database's clock is ahead of ours
  std::chrono::microseconds clock_uncertainty{0};  // half of the round trip
  int connection_limit = 0;                        // the lowest limit of server, role and database
  double notification_queue = 0;                   // 0 empty, 1 full
  bool fsync = true;
  bool synchronous_commit = true;
  std::optional<outbox::EventPartitionReport> event_log;  // none: the schema is not current
  std::optional<outbox::HorizonHolder> horizon;           // the oldest writing transaction; none: there is none
};

// The failures, or one "ok" finding with the facts if nothing fails; then the warnings.
Findings assess_database(const DatabaseFacts& facts, std::size_t connections_needed);

// The most connections that one node with this configuration opens.
std::size_t connections_needed(const Config& config, std::size_t cores);

// A failure with advice. `reason` is libpq's message.
Finding assess_unreachable(std::string_view reason);

// `mode` is the mode that a Listener reached; kConnecting: it had not connected when the time was up.
Finding assess_listen(ListenMode configured, pg::Listener::Mode mode);

// Whether the log of events has its months: those to come, and none that should be gone.
Finding assess_event_log(const outbox::EventPartitionReport& report);

// Whether a transaction holds up the delivery of events.
Finding assess_horizon(const std::optional<outbox::HorizonHolder>& holder);

// The tables that a migration's SQL creates, in order.
std::vector<std::string> tables_created_by(std::string_view sql);

}  // namespace fencepost::doctor
