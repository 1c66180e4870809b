// The flags that choose the configuration, and with it the database, of a command.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

#include "config/command_config.hpp"

namespace fencepost::cli {

struct ConfigFlags {
  std::string config_file;  // empty: FENCEPOST_CONFIG, or none
  std::string dsn;          // empty: as configured
  std::string data_dir;     // of a running `up`, whose database is then used; empty: none
  std::vector<ConfigFlag> overrides;
};

// True if --data-dir is the only flag, so that the configuration of the running `up` is meant.
bool is_up_alone(const ConfigFlags& flags);

// The configuration with the flags on top. Errors: as load_command_config, and as read_up_json for --data-dir.
Result<Config> load(const ConfigFlags& flags, std::vector<std::string> required, KeyFiles keys = KeyFiles::kClosed);

// Prints the warnings on stderr, one line each.
void print_warnings(const Config& config);

}  // namespace fencepost::cli
