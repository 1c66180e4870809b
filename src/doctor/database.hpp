// What a database must be like for a node to work on it. Facts in, findings out: node/doctor_database_probe.hpp
// gathers the facts.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "pg/listener.hpp"
#include "pg/migrations.hpp"

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

struct TableRights {
  std::string table;
  std::vector<std::string> missing;  // of SELECT, INSERT, UPDATE, DELETE
};

struct DatabaseFacts {
  int version_num = 0;  // 150020
  std::string version;  // "15.20"
  bool standby = false;
  bool read_only = false;  // sessions start read-only, on a primary too
  std::string role;
  std::optional<std::string> schema;  // none: no schema of the search_path exists or may be used
  bool may_create = false;            // in that schema
  std::vector<TableRights> tables;    // those of ours that exist
  std::optional<Error> migrations;    // what pg::check_migrations complains of
  std::string newest_migration;
  std::chrono::microseconds clock_ahead{0};        // the database's clock before ours
  std::chrono::microseconds clock_uncertainty{0};  // the answer was that long under way
  int connection_limit = 0;                        // of the server, the role or the database, whichever is lowest
  double notification_queue = 0;                   // 0 empty, 1 full
  bool fsync = true;
  bool synchronous_commit = true;
};

// One "ok" line with what is there unless something fails, then the warnings; or what fails, then the warnings.
Findings assess_database(const DatabaseFacts& facts, std::size_t connections_needed);

// How many connections one node with this configuration opens at most.
std::size_t connections_needed(const Config& config, std::size_t cores);

// `reason` is libpq's.
Finding assess_unreachable(std::string_view reason);

// `mode` is what became of a Listener; kConnecting: it was still at it when time was up.
Finding assess_listen(ListenMode configured, pg::Listener::Mode mode);

// The tables that a migration's SQL creates, in order.
std::vector<std::string> tables_created_by(std::string_view sql);

}  // namespace fencepost::doctor
