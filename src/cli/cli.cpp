#include "cli/cli.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "node/system_routes.hpp"
#include "runtime/log.hpp"

#include "cli/exit_code.hpp"
#include "cli/nouns.hpp"

namespace fencepost::cli {
namespace {

struct Noun {
  const char* name;
  const char* help;
  void (*add)(CLI::App& noun, Run& run);
};

constexpr Noun kNouns[] = {
    {"up", "Start everything on this machine: PostgreSQL, a dev chain, Fencepost", add_up},
    {"serve", "Run a node against your own PostgreSQL", add_serve},
    {"migrate", "Bring the database's schema up to date", add_migrate},
    {"doctor", "Check configuration, database, chains and mail, and say how to fix them", add_doctor},
    {"config", "Show the configuration in force, secrets masked", add_config},
    {"apikey", "Make, list and revoke API keys", add_apikey},
    {"tx", "Send transactions, follow them, and fix what is stuck", add_tx},
    {"signer", "Make, import and list signing keys, and fix a signer's nonces", add_signer},
    {"transfer", "Have members pay each other, follow it, and audit the money", add_transfer},
};

int show_version() {
  fmt::print("fencepost {}\n", version());
  return kExitDone;
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app{"Fencepost: value that moves later, and exactly once"};
  app.name("fencepost");
  app.require_subcommand(1);
  app.footer(kExitCodes);
  Run action;
  for (const auto& noun : kNouns) noun.add(*app.add_subcommand(noun.name, noun.help), action);
  app.add_subcommand("version", "Show the version")->callback([&action] { action = show_version; });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kExitDone : kExitUsage;
  }
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
