// The configuration of `up`: the user's own, on the parts that `up` starts, above the defaults that suit a desk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "config/command_config.hpp"

namespace fencepost {

struct UpParts {
  std::string dsn;
  std::optional<std::string> chain_url;  // none: the user configures a chain
  std::int64_t chain_id = 0;             // of that one
  std::filesystem::path log_file;        // unless log.file is set
  std::optional<std::uint16_t> port;     // --port
};

// What `up` has started is not for the user to change: it comes as flags. What only suits a desk are defaults, below
// file and environment.
CommandConfig up_config(const std::string& config_file, const UpParts& parts);

}  // namespace fencepost
