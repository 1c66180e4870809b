#include "cli/cli.hpp"

#include <functional>
#include <string>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "node/system_routes.hpp"
#include "runtime/log.hpp"

#include "cli/cli_transfer.hpp"
#include "cli/cli_tx.hpp"
#include "cli/commands.hpp"

namespace fencepost {
namespace {

constexpr auto kExitCodes =
    "Exit codes:\n"
    "  0  done\n"
    "  1  failed, or refused\n"
    "  2  the command line, the configuration or the request is wrong\n"
    "  3  the transaction failed for good, the transfer was rejected, or the audit found money missing\n"
    "  4  not there in time\n"
    "  5  there is no such thing\n"
    "  6  cannot be reached, or too busy: try again\n";

// One command line: what was typed is stored here, and `run` is what it asks for.
struct CommandLine {
  ConfigFlags config;
  std::string dsn;
  bool json = false;
  UpOptions up;
  std::uint16_t up_port = 0;
  KeyCreateFlags key;
  std::string key_id;
  std::function<int()> run;

  ConfigFlags flags() const {
    auto all = config;
    if (!dsn.empty()) all.overrides.push_back({"--dsn", "database.dsn", dsn});
    return all;
  }
};

void add_config_flags(CLI::App& command, CommandLine& line) {
  command.add_option("-c,--config", line.config.config_file, "Configuration file (also FENCEPOST_CONFIG)");
  command.add_option("--dsn", line.dsn, "Database, in place of database.dsn");
  command.add_option("--data-dir", line.config.data_dir, "The data directory of a running 'up', to use its database");
}

void add_running(CLI::App& app, CommandLine& line) {
  auto* up = app.add_subcommand("up", "Start everything on this machine: PostgreSQL, a dev chain, Fencepost");
  up->add_option("--data-dir", line.up.data_dir, "Where everything is kept")->capture_default_str();
  auto* port = up->add_option("--port", line.up_port, "Port of the API (default 8080; 0: any free one)");
  up->add_option("-c,--config", line.up.config_file, "Configuration file, for anything beyond the defaults");
  up->callback([&line, port] {
    if (port->count() > 0) line.up.port = line.up_port;
    line.run = [&line] { return up_command(line.up); };
  });

  auto* serve = app.add_subcommand("serve", "Run a node against your own PostgreSQL");
  add_config_flags(*serve, line);
  serve->callback([&line] { line.run = [&line] { return serve_command(line.flags()); }; });
}

void add_upkeep(CLI::App& app, CommandLine& line) {
  auto* migrate = app.add_subcommand("migrate", "Bring the database's schema up to date");
  add_config_flags(*migrate, line);
  migrate->callback([&line] { line.run = [&line] { return migrate_command(line.flags()); }; });

  auto* doctor =
      app.add_subcommand("doctor", "Check configuration, database, chains and mail, and say how to mend them");
  add_config_flags(*doctor, line);
  doctor->add_flag("--json", line.json, "For scripts");
  doctor->callback([&line] { line.run = [&line] { return doctor_command({line.flags(), line.json}); }; });

  auto* config = app.add_subcommand("config", "Show the configuration in force, secrets masked");
  add_config_flags(*config, line);
  config->callback([&line] { line.run = [&line] { return config_command(line.flags()); }; });

  app.add_subcommand("version", "Show the version")->callback([&line] {
    line.run = [] {
      fmt::print("fencepost {}\n", version());
      return kExitDone;
    };
  });
}

void add_api_keys(CLI::App& app, CommandLine& line) {
  auto* apikey = app.add_subcommand("apikey", "Make, list and revoke API keys");
  apikey->require_subcommand(1);

  auto* create = apikey->add_subcommand("create", "Make a key and show it, once");
  add_config_flags(*create, line);
  create->add_option("--label", line.key.label, "What it is for")->required();
  create->add_option("--scope", line.key.scopes, "admin or <domain>:read|write|operate; several allowed")->required();
  create->add_option("--signer", line.key.signers, "Only for this signer; several allowed");
  create->add_option("--guild", line.key.guilds, "Only for this guild; several allowed");
  create->add_option("--expires-in", line.key.expires_in, "For example 12h or 30d; default: never");
  create->add_flag("--json", line.key.json, "For scripts");
  create->callback([&line] {
    line.run = [&line] {
      line.key.config = line.flags();
      return apikey_create_command(line.key);
    };
  });

  auto* list = apikey->add_subcommand("list", "Show all keys, without their secrets");
  add_config_flags(*list, line);
  list->add_flag("--json", line.json, "For scripts");
  list->callback([&line] { line.run = [&line] { return apikey_list_command(line.flags(), line.json); }; });

  auto* revoke = apikey->add_subcommand("revoke", "Make a key useless, at once and for good");
  add_config_flags(*revoke, line);
  revoke->add_option("key-id", line.key_id, "As shown by list")->required();
  revoke->callback([&line] { line.run = [&line] { return apikey_revoke_command(line.flags(), line.key_id); }; });
}

}  // namespace

int run_cli(int argc, char** argv) {
  CLI::App app{"Fencepost: value that moves later, and exactly once"};
  app.name("fencepost");
  app.require_subcommand(1);
  app.footer(kExitCodes);
  CommandLine line;
  add_running(app, line);
  add_upkeep(app, line);
  add_api_keys(app, line);
  add_tx_commands(app, line.run);
  add_signer_commands(app, line.run);
  add_transfer_commands(app, line.run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kExitDone : kExitUsage;
  }
  int code = kExitFailed;
  try {
    code = line.run();
  } catch (const std::exception&) {
    code = report(error_of(std::current_exception()));
  }
  log::shutdown();
  return code;
}

}  // namespace fencepost
