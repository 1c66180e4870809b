// Adds verbs to a noun, and the flags that many verbs share. Includes CLI11: for the .cpp files of nouns only.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/api_access.hpp"
#include "cli/api_command.hpp"
#include "cli/config_flags.hpp"
#include "cli/nouns.hpp"

namespace fencepost::cli {

// Parsing `command` makes `run` call `action` with the flags, which live as long as the command does.
template <class Flags>
std::shared_ptr<Flags> on_parsed(CLI::App& command, Run& run, int (*action)(const Flags&), Flags initial = {}) {
  auto flags = std::make_shared<Flags>(std::move(initial));
  command.callback([&run, flags, action] { run = [flags, action] { return action(*flags); }; });
  return flags;
}

template <class Flags>
struct Verb {
  CLI::App& command;
  std::shared_ptr<Flags> flags;
};
template <class Flags>
Verb<Flags> add_verb(CLI::App& noun, Run& run, const std::string& name, const std::string& help,
                     int (*action)(const Flags&), Flags initial = {}) {
  auto& command = *noun.add_subcommand(name, help);
  return {command, on_parsed(command, run, action, std::move(initial))};
}

inline void add_api_flags(CLI::App& command, ApiFlags& flags) {
  command.add_option("--url", flags.url, "URL of a node's API (also FENCEPOST_URL)");
  command.add_option("--api-key", flags.api_key,
                     "API key; prefer FENCEPOST_API_KEY, which other users of this machine cannot see");
  command.add_option("--data-dir", flags.data_dir,
                     "Data directory of a running 'up', to use its API and key; default: ./var");
}

inline void add_config_flags(CLI::App& command, ConfigFlags& flags) {
  command.add_option("-c,--config", flags.config_file, "Configuration file (also FENCEPOST_CONFIG)");
  command.add_option("--dsn", flags.dsn, "Connection string of the database, overrides database.dsn");
  command.add_option("--data-dir", flags.data_dir, "Data directory of a running 'up', to use its configuration");
}

// Returns the option --all.
inline CLI::Option* add_page_flags(CLI::App& command, PageFlags& page) {
  auto* limit = command.add_option("--limit", page.limit, "Largest number of items to show")
                    ->capture_default_str()
                    ->check(CLI::Range(1, 10'000));
  command.add_option("--cursor", page.cursor, "Begin after a list that ended with this cursor");
  return command.add_flag("--all", page.all, "Show all items")->excludes(limit);
}

inline void add_json_flag(CLI::App& command, bool& as_json) {
  command.add_flag("--json", as_json, "Print JSON, for scripts");
}

}  // namespace fencepost::cli
