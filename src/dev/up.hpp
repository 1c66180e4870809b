// `fencepost up`: everything a newcomer needs in one process: a private PostgreSQL, a development chain and a node.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace fencepost {

struct UpOptions {
  std::filesystem::path data_dir = "var";
  std::optional<std::uint16_t> port;  // none: as configured
  std::string config_file;            // empty: FENCEPOST_CONFIG, or none
  std::string program = "fencepost";  // as the user starts it, for the commands that are printed
};

// Starts everything, runs until a signal stops it, and stops everything. Prints what a person needs to use it.
Result<void> run_up(const UpOptions& options);

}  // namespace fencepost
