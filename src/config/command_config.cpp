#include "config/command_config.hpp"

namespace fencepost {

Result<Config> load_command_config(const CommandConfig& from, std::vector<std::string> required, KeyFiles keys) {
  ConfigSources sources;
  sources.environment = from.environment ? *from.environment : process_environment();
  auto file = from.file;
  if (const auto it = sources.environment.find("FENCEPOST_CONFIG"); file.empty() && it != sources.environment.end()) {
    file = it->second;
  }
  if (!file.empty()) {
    auto text = read_config_file(file);
    if (!text) return fail(text.error());
    sources.file = std::move(*text);
  }
  sources.flags = from.overrides;
  sources.defaults = from.defaults;
  sources.required = std::move(required);
  sources.opens_keys = keys == KeyFiles::kOpened;
  return load_config(sources);
}

}  // namespace fencepost
