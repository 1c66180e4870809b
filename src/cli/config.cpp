// `fencepost config`: shows the configuration in force.
#include "config/config.hpp"

#include <fmt/format.h>

#include "cli/database.hpp"
#include "cli/exit_code.hpp"
#include "cli/text_table.hpp"
#include "cli/verb.hpp"
#include "dev/up_settings.hpp"

namespace fencepost::cli {
namespace {

int show_config(const ConfigFlags& flags) {
  if (const auto chosen = with_usual_up(flags); is_up_alone(chosen)) {
    const auto yaml = yaml_of_up(chosen.data_dir);
    if (!yaml) return report(yaml.error());
    fmt::print("# the 'up' that runs in {}\n{}", printable(chosen.data_dir), *yaml);
    return kExitDone;
  }
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
