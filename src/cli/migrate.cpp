// `fencepost migrate`: brings the database's schema up to date.
#include <fmt/format.h>

#include "node/database_session.hpp"
#include "pg/migrations.hpp"

#include "cli/exit_code.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

int migrate(const ConfigFlags& flags) {
  const auto config = load(flags, {"database.dsn"});
  if (!config) return report(config.error());
  pg::Connector connector(session_options(*config));
  const auto applied = run_blocking(pg::migrate(connector, pg::embedded_migrations()));
  if (!applied) return report(applied.error());
  for (const auto& name : *applied) fmt::print("applied {}\n", name);
  if (applied->empty()) fmt::print("nothing to do: the schema is current\n");
  return kExitDone;
}

}  // namespace

void add_migrate(CLI::App& noun, Run& run) {
  add_config_flags(noun, *on_parsed<ConfigFlags>(noun, run, migrate));
}

}  // namespace fencepost::cli
