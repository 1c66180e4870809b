// Loads the configuration of a command: its file, the environment and the overrides of its flags.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

#include "config/config.hpp"

namespace fencepost {

struct CommandConfig {
  std::string file;  // empty: FENCEPOST_CONFIG, or none
  std::vector<ConfigFlag> overrides;
  std::vector<ConfigFlag> defaults = {};
  std::optional<std::map<std::string, std::string>> environment = std::nullopt;  // none: that of this process
};

// Whether the command opens the files of keystore.directory, and so needs their password.
enum class KeyFiles { kClosed, kOpened };

// Errors: as read_config_file and load_config.
Result<Config> load_command_config(const CommandConfig& from, std::vector<std::string> required,
                                   KeyFiles keys = KeyFiles::kClosed);

}  // namespace fencepost
