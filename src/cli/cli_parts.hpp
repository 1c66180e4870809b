// What the nouns of the command line have in common.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/api_client.hpp"

namespace fencepost {

// A subcommand whose flags live as long as its callback, which sets `run`.
template <class Flags>
std::pair<CLI::App*, std::shared_ptr<Flags>> add_verb(CLI::App& noun, const std::string& verb, const std::string& help,
                                                      std::function<int()>& run, int (*command)(const Flags&),
                                                      Flags flags = {}) {
  auto shared = std::make_shared<Flags>(std::move(flags));
  auto* app = noun.add_subcommand(verb, help);
  app->callback([&run, shared, command] { run = [shared, command] { return command(*shared); }; });
  return {app, shared};
}

inline void add_api_flags(CLI::App& command, ApiFlags& flags) {
  command.add_option("--url", flags.url, "A node's API (also FENCEPOST_URL)");
  command.add_option("--api-key", flags.api_key, "Better in FENCEPOST_API_KEY, where other users do not see it");
  command.add_option("--data-dir", flags.data_dir, "The data directory of a running 'up', to use its API and key");
}

inline void add_json_flag(CLI::App& command, bool& as_json) {
  command.add_flag("--json", as_json, "For scripts");
}

}  // namespace fencepost
