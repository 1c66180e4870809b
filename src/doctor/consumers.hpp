// Checks that nodes serve the durable consumers of the event log (webhooks, brokers), from the database.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

struct ConsumerFacts {
  std::string consumer;
  bool active = true;
  bool claimed = false;                             // a node serves it
  std::chrono::seconds behind{0};                   // age of the oldest event after its position
  std::optional<std::chrono::seconds> failing_for;  // nullopt: the last delivery succeeded
  std::string last_error;
};

// One finding. A consumer that no node serves, or that is far behind, is a failure. One that fails is a warning: the
// receiver may be down. Paused consumers are only counted.
Finding assess_consumers(const std::vector<ConsumerFacts>& consumers);

// Asks the database. Blocks. An unreachable database is only a warning here: the check "database" reports the failure.
Findings check_consumers(const Config& config);

}  // namespace fencepost::doctor
