// `fencepost up`: a private PostgreSQL, a development chain and a node, for trying Fencepost out.
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
  std::string program = "fencepost";  // the name by which the user starts it, for printed commands
};

// Starts everything, prints how to use it, runs until a signal arrives, and stops everything.
Result<void> run_up(const UpOptions& options);

}  // namespace fencepost
