#include "node/commands.hpp"

#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/json_reader.hpp"
#include "node/database_session.hpp"
#include "node/node.hpp"
#include "pg/migrations.hpp"
#include "runtime/log.hpp"

namespace fencepost {

namespace {

// What a running `up` has announced.
Result<std::string> dsn_of_up(const std::filesystem::path& data_dir) {
  const auto file = data_dir / "up.json";
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.empty()) {
    return fail(not_found("not_up", fmt::format("there is no {}: is 'fencepost up' running there?", file.string())));
  }
  const auto document = parse_json(text, text.size());
  if (!document) return fail(document.error());
  return JsonReader(*document, "up.json").field("dsn").string();
}

}  // namespace

Result<Config> load(const ConfigFlags& flags, std::vector<std::string> required) {
  ConfigSources sources;
  sources.environment = process_environment();
  auto file = flags.config_file;
  if (const auto it = sources.environment.find("FENCEPOST_CONFIG"); file.empty() && it != sources.environment.end()) {
    file = it->second;
  }
  if (!file.empty()) {
    auto text = read_config_file(file);
    if (!text) return fail(text.error());
    sources.file = std::move(*text);
  }
  sources.flags = flags.overrides;
  if (!flags.data_dir.empty()) {
    auto dsn = dsn_of_up(flags.data_dir);
    if (!dsn) return fail(dsn.error());
    sources.flags.push_back({"--data-dir", "database.dsn", std::move(*dsn)});
  }
  sources.required = std::move(required);
  return load_config(sources);
}

int report(const Error& error) {
  fmt::print(stderr, "fencepost: {}\n", error.message);
  for (const auto& [key, value] : error.context) fmt::print(stderr, "  {}: {}\n", key, value);
  return kExitFailed;
}

int serve_command(const ConfigFlags& flags) {
  const auto config = load(flags, {"database.dsn"});
  if (!config) return report(config.error());
  log::init({.level = config->log.level, .format = config->log.format, .file = config->log.file});
  const auto served = run_node(*config, {});
  return served ? kExitDone : report(served.error());
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
