#include "cli/mistake.hpp"

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text.hpp"

namespace fencepost::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  for (const auto* command : commands_of(app)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> out;
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

std::vector<std::string_view> views(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

std::string choices(const CLI::App& app) {
  std::string out;
  for (const auto* command : commands_of(app)) out += (out.empty() ? "" : ", ") + command->get_name();
  return out;
}

std::string unknown_command(const CLI::App& app, const std::string& path, const std::string& word) {
  std::vector<std::string> names;
  for (const auto* command : commands_of(app)) names.push_back(command->get_name());
  return fmt::format("there is no command {}{}\nCommands of {}: {}", quote(fmt::format("{} {}", path, word)),
                     did_you_mean(word, views(names)), path, choices(app));
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::optional<std::string> unknown_flag(const CLI::App& command, const std::string& path,
                                        std::span<const std::string> arguments) {
  const auto flags = flags_of(command);
  for (const auto& argument : arguments) {
    if (argument == "--") break;
    const auto flag = argument.substr(0, argument.find('='));
    const bool is_long = flag.starts_with("--");
    const bool is_short = !is_long && flag.size() > 1 && flag[0] == '-' && is_letter(flag[1]);  // not -5
    if (!is_long && !is_short) continue;
    // A short flag may have its value right behind it.
    if (command.get_option_no_throw(is_long ? flag : flag.substr(0, 2)) != nullptr) continue;
    return fmt::format("there is no flag {} of {}{}", quote(flag), path, did_you_mean(flag, views(flags)));
  }
  return std::nullopt;
}

}  // namespace

const CLI::App* find_command(const CLI::App& app, std::span<const std::string> path) {
  const auto* at = &app;
  for (const auto& name : path) {
    if (at != nullptr) at = command_named(*at, name);
  }
  return at;
}

std::optional<std::string> explain_mistake(const CLI::App& app, std::span<const std::string> arguments) {
  const auto* at = &app;
  auto path = app.get_name();
  while (!commands_of(*at).empty()) {
    if (arguments.empty()) return fmt::format("a command of {} is missing; expected one of: {}", path, choices(*at));
    const auto& word = arguments.front();
    if (word.starts_with('-')) break;
    const auto* command = command_named(*at, word);
    if (command == nullptr) return unknown_command(*at, path, word);
    at = command;
    path += " " + word;
    arguments = arguments.subspan(1);
  }
  return unknown_flag(*at, path, arguments);
}

}  // namespace fencepost::cli
