#include "cli/database.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "cli/text_table.hpp"
#include "dev/up_json.hpp"

namespace fencepost::cli {
namespace {

using Environment = std::map<std::string, std::string>;

std::string variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::string file_of(const ConfigFlags& flags, const Environment& environment) {
  return flags.config_file.empty() ? variable(environment, "FENCEPOST_CONFIG") : flags.config_file;
}

// The source of database.dsn. Requires: database.dsn is set.
std::string dsn_from(const ConfigFlags& flags, const Environment& environment) {
  if (!flags.dsn.empty()) return "--dsn";
  if (!flags.data_dir.empty()) return fmt::format("{} (--data-dir)", up_json_file(flags.data_dir).string());
  for (const auto* name : {"FENCEPOST_DATABASE_DSN", "FENCEPOST_DATABASE_DSN_FILE"}) {
    if (environment.contains(name)) return name;
  }
  return file_of(flags, environment);
}

}  // namespace

Result<DatabaseChoice> find_database(const ConfigFlags& flags, KeyFiles keys, const std::string& usual_data_dir) {
  auto config = load(flags, {}, keys);
  if (!config) return fail(config.error());
  const auto environment = process_environment();
  if (!config->database.dsn.empty()) return DatabaseChoice{std::move(*config), dsn_from(flags, environment)};
  const auto up = up_json_file(usual_data_dir);
  // A configuration file without database.dsn is an error: do not fall back to the database of an `up`.
  if (!file_of(flags, environment).empty() || !std::filesystem::exists(up)) {
    return DatabaseChoice{std::move(*config), ""};
  }
  auto in_usual_place = flags;
  in_usual_place.data_dir = usual_data_dir;
  config = load(in_usual_place, {}, keys);
  if (!config) return fail(config.error());
  return DatabaseChoice{std::move(*config), up.string()};
}

Error naming(const DatabaseChoice& database, Error error) {
  if (!error.cause.empty()) error.with("cause", printable(error.cause));
  error.with("database from", database.from);
  return error;
}

Result<DatabaseChoice> need_database(const ConfigFlags& flags) {
  auto found = find_database(flags);
  if (!found) return found;
  print_warnings(found->config);
  if (!found->from.empty()) return found;
  return fail(
      invalid("no_database",
              "no database is given. Give --dsn, a --config with database.dsn, or --data-dir of a running 'up'; or "
              "set FENCEPOST_DATABASE_DSN"));
}

}  // namespace fencepost::cli
