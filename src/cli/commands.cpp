#include "cli/commands.hpp"

#include <fmt/format.h>

#include "base/json_reader.hpp"
#include "node/database_session.hpp"
#include "node/node.hpp"
#include "pg/migrations.hpp"
#include "runtime/log.hpp"

#include "dev/up_json.hpp"

namespace fencepost {
namespace {

int exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
    case ErrorKind::kTooLarge:
      return kExitUsage;
    case ErrorKind::kNotFound:
      return kExitNotFound;
    case ErrorKind::kRateLimited:
    case ErrorKind::kUnavailable:
    case ErrorKind::kTimeout:
      return kExitUnavailable;
    case ErrorKind::kUnauthenticated:
    case ErrorKind::kForbidden:
    case ErrorKind::kConflict:
    case ErrorKind::kUnprocessable:
    case ErrorKind::kInternal:
      return kExitFailed;
  }
  return kExitFailed;
}

}  // namespace

Result<Config> load(const ConfigFlags& flags, std::vector<std::string> required, KeyFiles keys) {
  CommandConfig from{.file = flags.config_file, .overrides = flags.overrides};
  if (!flags.data_dir.empty()) {
    const auto up = read_up_json(flags.data_dir);
    if (!up) return fail(up.error());
    from.overrides.push_back({"--data-dir", "database.dsn", JsonReader(*up, "up.json").field("dsn").string()});
  }
  return load_command_config(from, std::move(required), keys);
}

int report(const Error& error) {
  fmt::print(stderr, "fencepost: {}\n", error.message);
  for (const auto& [key, value] : error.context) fmt::print(stderr, "  {}: {}\n", key, value);
  return exit_code_of(error.kind);
}

int serve_command(const ConfigFlags& flags) {
  const auto config = load(flags, {"database.dsn"}, KeyFiles::kOpened);
  if (!config) return report(config.error());
  log::init({.level = config->log.level, .format = config->log.format, .file = config->log.file});
  const auto served = run_node(*config, {});
  return served ? kExitDone : report(served.error());
}

int up_command(const UpOptions& options) {
  const auto ran = run_up(options);
  return ran ? kExitDone : report(ran.error());
}

int migrate_command(const ConfigFlags& flags) {
  const auto config = load(flags, {"database.dsn"});
  if (!config) return report(config.error());
  pg::Connector connector(session_options(*config));
  const auto applied = run_blocking(pg::migrate(connector, pg::embedded_migrations()));
  if (!applied) return report(applied.error());
  for (const auto& name : *applied) fmt::print("applied {}\n", name);
  if (applied->empty()) fmt::print("nothing to do: the schema is current\n");
  return kExitDone;
}

int config_command(const ConfigFlags& flags) {
  const auto config = load(flags, {});
  if (!config) return report(config.error());
  fmt::print("{}", config->to_yaml());
  return kExitDone;
}

}  // namespace fencepost
