#include "cli/config_flags.hpp"

#include <utility>

#include "base/json_reader.hpp"

#include "cli/exit_code.hpp"
#include "dev/up_json.hpp"

namespace fencepost::cli {

Result<Config> load(const ConfigFlags& flags, std::vector<std::string> required, KeyFiles keys) {
  CommandConfig from{.file = flags.config_file, .overrides = flags.overrides};
  if (!flags.dsn.empty()) from.overrides.push_back({"--dsn", "database.dsn", flags.dsn});
  if (!flags.data_dir.empty()) {
    const auto up = read_up_json(flags.data_dir);
    if (!up) return fail(up.error());
    from.overrides.push_back({"--data-dir", "database.dsn", JsonReader(*up, "up.json").field("dsn").string()});
  }
  return load_command_config(from, std::move(required), keys);
}

bool is_up_alone(const ConfigFlags& flags) {
  return !flags.data_dir.empty() && flags.config_file.empty() && flags.dsn.empty() && flags.overrides.empty();
}

void print_warnings(const Config& config) {
  for (const auto& warning : config.warnings) print_warning(warning);
}

}  // namespace fencepost::cli
