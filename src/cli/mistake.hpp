// Explains why a command line does not parse.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace CLI {
class App;
}

namespace fencepost::cli {

// The command with this path, such as {"tx", "send"}; `app` for an empty one. nullptr: there is none.
const CLI::App* find_command(const CLI::App& app, std::span<const std::string> path);

// Names an unknown command or flag and suggests the nearest known one, or lists the commands if one is missing. Nothing
// for any other mistake. `arguments`: without the program's name.
std::optional<std::string> explain_mistake(const CLI::App& app, std::span<const std::string> arguments);

}  // namespace fencepost::cli
