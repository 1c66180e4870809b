// The database of a command that works on one directly, without a node.
#pragma once

#include <exception>
#include <string>
#include <type_traits>

#include "base/error.hpp"

#include "cli/config_flags.hpp"
#include "config/config.hpp"

namespace fencepost::cli {

struct DatabaseChoice {
  Config config;
  std::string from;  // what named database.dsn, for messages: "--dsn", "var/up.json"; empty: nothing did
};

// database.dsn from the first that names one: --dsn or --data-dir, the environment, the configuration file, and if no
// file was given either, an `up` that runs in its usual place. Errors: as load.
Result<DatabaseChoice> find_database(const ConfigFlags& flags, KeyFiles keys = KeyFiles::kClosed,
                                     const std::string& usual_data_dir = "var");
// The same, and kInvalid `no_database` when there is none. Prints the configuration's warnings.
Result<DatabaseChoice> need_database(const ConfigFlags& flags);

// Adds what named the database, and what it said: both for the person who named it.
Error naming(const DatabaseChoice& database, Error error);

// What `work` returns; or the error that it throws, as `naming` makes it.
template <class Work>
Result<std::invoke_result_t<Work&>> at_database(const DatabaseChoice& database, Work work) {
  try {
    return work();
  } catch (const std::exception&) {
    return fail(naming(database, error_of(std::current_exception())));
  }
}

}  // namespace fencepost::cli
