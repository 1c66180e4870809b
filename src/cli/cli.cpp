#include "cli/cli.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "node/system_routes.hpp"
#include "runtime/log.hpp"

#include "cli/exit_code.hpp"
#include "cli/help.hpp"
#include "cli/mistake.hpp"
#include "cli/nouns.hpp"

namespace fencepost::cli {
namespace {

struct Noun {
  const char* name;
  const char* help;
  void (*add)(CLI::App& noun, Run& run);
};

// ./fp reads the names from this table and passes these commands to this program.
constexpr Noun kNouns[] = {
    {"up", "Start everything on this machine: PostgreSQL, a dev chain, Fencepost", add_up},
    {"serve", "Run a node against your own PostgreSQL", add_serve},
    {"migrate", "Bring the database's schema up to date", add_migrate},
    {"doctor", "Check configuration, database, chains and mail, and say how to fix problems", add_doctor},
    {"config", "Show the configuration in force, secrets masked", add_config},
    {"apikey", "Create, list and revoke API keys", add_apikey},
    {"whoami", "Show which node and which key the commands use, and what the key may do", add_whoami},
    {"tx", "Send transactions, follow them, and fix stuck ones", add_tx},
    {"signer", "Create, import and list signing keys, and fix a signer's nonces", add_signer},
    {"events", "Print events as they happen, or from the log", add_events},
    {"timelock", "Watch timelock contracts, see what they will do and when, and verify it", add_timelock},
    {"mail", "See the mails about flows: files, the log, previews", add_mail},
    {"transfer", "Transfer money between members, follow transfers, and audit the books", add_transfer},
    {"webhook", "Send events to URLs, see what was delivered, and replay what was not", add_webhook},
    {"chain", "Show a node's chains and their endpoints", add_chain},
    {"node", "Show the nodes that share the database", add_node},
};

std::string version_line() {
  return fmt::format("fencepost {}", version());
}

int show_version() {
  fmt::print("{}\n", version_line());
  return kExitDone;
}

int refuse(const CLI::App& app, const CLI::ParseError& error, std::span<const std::string> arguments) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help or --version
  const auto mistake = explain_mistake(app, arguments);
  return report(invalid("bad_usage", mistake.value_or(error.what()) + "\nTry --help for more."));
}

// Looked for in the arguments themselves, so that a mistake in them is reported in the same form.
bool wants_json(std::span<const std::string> arguments) {
  const auto end = std::ranges::find(arguments, "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app{"Fencepost: value that moves later, and exactly once"};
  const auto* name = std::getenv("FENCEPOST_PROGRAM_NAME");
  app.name(name != nullptr && *name != '\0' ? name : "fencepost");
  app.set_version_flag("--version", version_line(), "Show the version");
  app.require_subcommand(1);
  Run action;
  for (const auto& noun : kNouns) noun.add(*app.add_subcommand(noun.name, noun.help), action);
  app.add_subcommand("version", "Show the version")->callback([&action] { action = show_version; });
  add_help(app, action);
  // After the commands, which would inherit it.
  app.footer(fmt::format("Exit codes: {} help exit-codes", app.get_name()));
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (wants_json(arguments)) use_json_on_stderr();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return refuse(app, e, arguments);
  }
  // A node logs. Any other command reports what matters itself, on stderr, which may be for scripts.
  const bool is_node = app.got_subcommand("up") || app.got_subcommand("serve");
  if (!is_node) log::set_level(log::Level::kOff);
  int code = kExitFailed;
  try {
    code = action();
  } catch (const std::exception&) {
    code = report(error_of(std::current_exception()));
  }
  log::shutdown();
  return code;
}

}  // namespace fencepost::cli
