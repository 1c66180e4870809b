// `fencepost migrate`: brings the database's schema up to date.
#include <fmt/format.h>

#include "node/database_session.hpp"
#include "pg/migrations.hpp"

#include "cli/database.hpp"
#include "cli/exit_code.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

int migrate(const ConfigFlags& flags) {
  const auto database = need_database(flags);
  if (!database) return report(database.error());
  const auto outcome = at_database(*database, [&] {
    pg::Connector connector(session_options(database->config));
    return run_blocking(pg::migrate(connector, pg::embedded_migrations()));
  });
  if (!outcome) return report(outcome.error());
  const auto& applied = *outcome;
  if (!applied) return report(naming(*database, applied.error()));
  for (const auto& name : *applied) fmt::print("applied {}\n", name);
  if (applied->empty()) fmt::print("nothing to do: the schema is current\n");
  return kExitDone;
}

}  // namespace

void add_migrate(CLI::App& noun, Run& run) {
  add_config_flags(noun, *on_parsed<ConfigFlags>(noun, run, migrate));
}

}  // namespace fencepost::cli
