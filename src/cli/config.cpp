// `fencepost config`: shows the configuration in force.
#include "config/config.hpp"

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

int show_config(const ConfigFlags& flags) {
  const auto config = load(flags, {});
  if (!config) return report(config.error());
  print_warnings(*config);
  fmt::print("{}", config->to_yaml());
  return kExitDone;
}

}  // namespace

void add_config(CLI::App& noun, Run& run) {
  add_config_flags(noun, *on_parsed<ConfigFlags>(noun, run, show_config));
}

}  // namespace fencepost::cli
