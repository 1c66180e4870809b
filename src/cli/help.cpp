#include "cli/help.hpp"

#include <vector>

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/mistake.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

constexpr auto kExitCodesTopic = "exit-codes";

struct HelpFlags {
  const CLI::App* app = nullptr;
  std::vector<std::string> topic;
};

int show_help(const HelpFlags& flags) {
  if (flags.topic == std::vector<std::string>{kExitCodesTopic}) {
    fmt::print("{}", kExitCodes);
    return kExitDone;
  }
  const auto* command = find_command(*flags.app, flags.topic);
  if (command == nullptr) {
    return report(invalid("bad_usage", explain_mistake(*flags.app, flags.topic).value_or("no such command")));
  }
  auto path = flags.app->get_name();
  for (const auto& word : flags.topic) path += " " + word;
  fmt::print("{}", command->get_formatter()->make_help(command, path, CLI::AppFormatMode::Normal));
  return kExitDone;
}

}  // namespace

void add_help(CLI::App& app, Run& run) {
  auto& help = *app.add_subcommand("help", "Show the help of a command; 'help exit-codes' lists the exit codes");
  const auto flags = on_parsed(help, run, show_help, HelpFlags{.app = &app, .topic = {}});
  help.add_option("topic", flags->topic, "A command, such as 'tx send', or exit-codes");
}

}  // namespace fencepost::cli
