#include "cli/database.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "cli/text_table.hpp"
#include "dev/up_json.hpp"
#include "dev/up_settings.hpp"

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

ConfigFlags with_usual_up(const ConfigFlags& flags, const std::string& usual_data_dir) {
  const auto environment = process_environment();
  const bool names_another = !flags.dsn.empty() || !flags.data_dir.empty() || !flags.overrides.empty() ||
                             !file_of(flags, environment).empty() ||
                             !variable(environment, "FENCEPOST_DATABASE_DSN").empty() ||
                             !variable(environment, "FENCEPOST_DATABASE_DSN_FILE").empty();
  auto out = flags;
  // A configuration file without database.dsn is an error: do not fall back to the database of an `up`.
  if (!names_another && std::filesystem::exists(up_json_file(usual_data_dir))) out.data_dir = usual_data_dir;
  return out;
}

Result<DatabaseChoice> find_database(const ConfigFlags& flags, KeyFiles keys, const std::string& usual_data_dir) {
  const auto chosen = with_usual_up(flags, usual_data_dir);
  auto config = is_up_alone(chosen) ? config_of_up(chosen.data_dir) : load(chosen, {}, keys);
  if (!config) return fail(config.error());
  DatabaseChoice out{.config = std::move(*config)};
  if (is_up_alone(chosen)) out.up = chosen.data_dir;
  if (out.config.database.dsn.empty()) return out;
  out.from = flags.data_dir.empty() && !out.up.empty() ? up_json_file(out.up).string()
                                                       : dsn_from(flags, process_environment());
  return out;
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
