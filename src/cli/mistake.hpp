// What is wrong with a command line that does not parse.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace CLI {
class App;
}

namespace fencepost::cli {

// A command or a flag that does not exist, with the nearest one that does, or the commands to choose from where one is
// missing. Nothing when it is none of these. `arguments`: without the program's name.
std::optional<std::string> explain_mistake(const CLI::App& app, std::span<const std::string> arguments);

}  // namespace fencepost::cli
