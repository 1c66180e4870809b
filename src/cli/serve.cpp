// `fencepost serve`: runs a node against the user's own PostgreSQL.
#include "node/node.hpp"
#include "runtime/log.hpp"

#include "cli/exit_code.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

int serve(const ConfigFlags& flags) {
  const auto config = load(flags, {"database.dsn"}, KeyFiles::kOpened);
  if (!config) return report(config.error());
  log::init({.level = config->log.level, .format = config->log.format, .file = config->log.file});
  for (const auto& warning : config->warnings) log::warn(warning);
  const auto served = run_node(*config, {});
  return served ? kExitDone : report(served.error());
}

}  // namespace

void add_serve(CLI::App& noun, Run& run) {
  add_config_flags(noun, *on_parsed<ConfigFlags>(noun, run, serve));
}

}  // namespace fencepost::cli
