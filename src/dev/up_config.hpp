// The configuration of `up`: the parts that `up` starts, then the user's own settings, then defaults for development.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "config/command_config.hpp"

namespace fencepost {

struct UpParts {
  std::string dsn;
  std::optional<std::string> chain_url;  // none: the user has configured a chain
  std::int64_t chain_id = 0;             // of the chain at chain_url
  std::filesystem::path log_file;        // unless log.file is set
  std::optional<std::uint16_t> port;     // --port
  std::filesystem::path mail_dir;        // for mail as files; empty: the user has configured mail
};

// The parts that `up` has started override the user's settings, as flags do. The defaults for development rank below
// file and environment.
CommandConfig up_config(const std::string& config_file, const UpParts& parts);

}  // namespace fencepost
