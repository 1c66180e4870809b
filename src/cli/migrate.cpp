// `fencepost migrate`: brings the database's schema up to date, and adds the coming months of the event log.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "node/database_session.hpp"
#include "outbox/event_partitions.hpp"
#include "pg/migrations.hpp"

#include "cli/api_command.hpp"
#include "cli/database.hpp"
#include "cli/exit_code.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

// For nodes whose role does not own the table event; nodes that own it add the months themselves.
awaitable<Result<std::vector<std::string>>> migrate_and_add_months(pg::Connector& connector,
                                                                   std::chrono::milliseconds retention) {
  auto applied = co_await pg::migrate(connector, pg::embedded_migrations());
  if (!applied) co_return applied;
  const auto report = co_await outbox::add_event_months(connector, {.retention = retention});
  if (report.months_ahead < outbox::kMonthsAhead) {
    print_warning(fmt::format("the event log has only {} months ahead; run this as the owner of the table event",
                              report.months_ahead));
  }
  co_return applied;
}

struct MigrateFlags {
  ConfigFlags config;
  bool json = false;
};

int migrate(const MigrateFlags& flags) {
  const auto database = need_database(flags.config);
  if (!database) return report(database.error());
  const auto outcome = at_database(*database, [&] {
    pg::Connector connector(session_options(database->config));
    return run_blocking(migrate_and_add_months(connector, database->config.events.retention));
  });
  if (!outcome) return report(outcome.error());
  const auto& applied = *outcome;
  if (!applied) return report(naming(*database, applied.error()));
  if (flags.json) {
    print_json(boost::json::object{{"applied", boost::json::array(applied->begin(), applied->end())}});
    return kExitDone;
  }
  for (const auto& name : *applied) fmt::print("applied {}\n", name);
  if (applied->empty()) fmt::print("nothing to do: the schema is current\n");
  return kExitDone;
}

}  // namespace

void add_migrate(CLI::App& noun, Run& run) {
  const auto flags = on_parsed<MigrateFlags>(noun, run, migrate);
  add_config_flags(noun, flags->config);
  add_json_flag(noun, flags->json);
}

}  // namespace fencepost::cli
