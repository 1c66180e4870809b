// Asks a real database for the facts that node/doctor_database.hpp judges. Each call blocks, runs a loop of its own
// on the calling thread, and takes at most a few times the connect timeout, whatever the database does.
#pragma once

#include <string_view>

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

// Findings of "database" and "listen". Changes nothing in the database.
Findings check_database(const Config& config);

// Why this is no connection string, without quoting any of it (it holds a password); empty when it is one.
std::string dsn_problem(std::string_view dsn);

}  // namespace fencepost::doctor
