// The database of a command that works on it directly, without a node.
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
  std::string from = {};  // the source of database.dsn, for messages: "--dsn", "var/up.json"; empty: not set
  std::string up = {};    // the data directory of the `up` whose configuration this is; empty: of none
};

// With --data-dir of an `up` that runs in ./var, if no flag and no variable names a file or a database.
ConfigFlags with_usual_up(const ConfigFlags& flags, const std::string& usual_data_dir = "var");

// database.dsn from the first source that has one: --dsn or --data-dir, the environment, the configuration file. If no
// file is given either, an `up` that runs in ./var. If --data-dir or ./var is all that is given, the whole
// configuration is that of the running `up`. Errors: as load; those of config_of_up.
Result<DatabaseChoice> find_database(const ConfigFlags& flags, KeyFiles keys = KeyFiles::kClosed,
                                     const std::string& usual_data_dir = "var");
// As above, but kInvalid `no_database` if no source has one. Prints the configuration's warnings.
Result<DatabaseChoice> need_database(const ConfigFlags& flags);

// Adds the source of database.dsn and the database's own message to the error.
Error naming(const DatabaseChoice& database, Error error);

// Returns the result of `work`, or the error that it throws, passed through `naming`.
template <class Work>
Result<std::invoke_result_t<Work&>> at_database(const DatabaseChoice& database, Work work) {
  try {
    return work();
  } catch (const std::exception&) {
    return fail(naming(database, error_of(std::current_exception())));
  }
}

}  // namespace fencepost::cli
