// `fencepost up`: starts PostgreSQL, a dev chain and a node on this machine.
#include "dev/up.hpp"

#include "cli/exit_code.hpp"
#include "cli/program_name.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

int up(const UpOptions& options) {
  auto with_name = options;
  with_name.program = program_name();
  const auto ran = run_up(with_name);
  return ran ? kExitDone : report(ran.error());
}

}  // namespace

void add_up(CLI::App& noun, Run& run) {
  const auto flags = on_parsed<UpOptions>(noun, run, up);
  noun.add_option("--data-dir", flags->data_dir, "Directory of the data")->capture_default_str();
  noun.add_option("--port", flags->port, "Port of the API (default 8080; 0: any free port)");
  noun.add_option("-c,--config", flags->config_file, "Configuration file, for anything beyond the defaults");
}

}  // namespace fencepost::cli
