#include "cli/config_flags.hpp"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/json_reader.hpp"

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

void print_warnings(const Config& config) {
  for (const auto& warning : config.warnings) fmt::print(stderr, "fencepost: warning: {}\n", warning);
}

}  // namespace fencepost::cli
