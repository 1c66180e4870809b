// The settings with which `up` runs its node. It writes them into up.json, so that `doctor` checks, and `config` shows,
// what really runs.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/error.hpp"

#include "config/command_config.hpp"

namespace fencepost {

struct UpSettings {
  CommandConfig from;      // its file is absolute, or empty
  bool dev_chain = false;  // the accounts of the dev chain are signers
};

// Errors: as load_command_config.
Result<Config> load_up_config(const UpSettings& settings);

// The members that up.json has for them. up.json is private to its owner: the overrides have secrets.
boost::json::object settings_json(const UpSettings& settings, const Config& config);

// The configuration of the `up` that runs in the directory: its settings, with the environment and the working
// directory of its process. Errors: as read_up_json; kNotFound `not_up` if that process is gone; kConflict
// `up_directory_unusable` if that directory is; as load_command_config.
Result<Config> config_of_up(const std::filesystem::path& data_dir);
// The same as it was when `up` started, as YAML, secrets masked. Errors: as read_up_json; `not_up`.
Result<std::string> yaml_of_up(const std::filesystem::path& data_dir);

}  // namespace fencepost
