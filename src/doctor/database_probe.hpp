// Asks a real database for the facts that doctor/database.hpp judges. Each call blocks the calling thread, on its own
// loop, for at most a few times the connect timeout, even if the database never answers.
#pragma once

#include <string_view>

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

// Findings of "database", "events" and "listen". Changes nothing in the database.
Findings check_database(const Config& config);

// Why `dsn` is not a valid connection string; empty if it is valid. Never quotes the text: it may hold a password.
std::string dsn_problem(std::string_view dsn);

}  // namespace fencepost::doctor
