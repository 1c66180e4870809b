#include "dev/up_settings.hpp"

#include <algorithm>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "base/json_reader.hpp"
#include "base/text.hpp"
#include "evm/keys/dev_accounts.hpp"
#include "runtime/leftover_process.hpp"
#include "runtime/read_file.hpp"

#include "dev/up_json.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kMostFlags = 100;
constexpr std::size_t kMostYaml = 1 << 20;

json::array flags_json(const std::vector<ConfigFlag>& flags) {
  json::array out;
  for (const auto& flag : flags) {
    out.push_back(json::object{{"option", flag.option}, {"path", flag.path}, {"value", flag.value}});
  }
  return out;
}

std::vector<ConfigFlag> read_flags(const JsonReader& list) {
  std::vector<ConfigFlag> out;
  for (const auto& flag : list.array(kMostFlags)) {
    out.push_back({flag.field("option").string(), flag.field("path").string(), flag.field("value").string(kMostYaml)});
  }
  return out;
}

constexpr auto kMostPid = std::numeric_limits<pid_t>::max();

pid_t pid_of(const JsonReader& up) {
  return static_cast<pid_t>(up.field("pid").int64(1, kMostPid));
}

fs::path proc_of(const JsonReader& up) {
  return fs::path("/proc") / std::to_string(pid_of(up));
}

// False if another process has the pid by now. An earlier version wrote no startTicks.
bool is_running(const JsonReader& up) {
  const auto process = process_info(pid_of(up));
  const auto start = up.field("startTicks");
  return process && start.present() && process->start_ticks == start.int64();
}

// The environment of a process of this user. Empty: there is no such process, or it has none.
std::map<std::string, std::string> environment_of(const fs::path& proc) {
  std::map<std::string, std::string> out;
  const auto text = read_file(proc / "environ");
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\0', at), text.size());
    const auto equals = text.find('=', at);
    if (equals < end) out.emplace(text.substr(at, equals - at), text.substr(equals + 1, end - equals - 1));
    at = end + 1;
  }
  return out;
}

// Reads up.json and checks that its process runs: after `kill -9` or a reboot the file is left over.
Result<json::value> read_live_up(const fs::path& data_dir) {
  auto up = read_up_json(data_dir);
  if (!up) return up;
  const JsonReader reader(*up, "up.json");
  if (is_running(reader)) return up;
  const auto file = up_json_file(data_dir).string();
  return fail(
      not_found("not_up", fmt::format("{} is left over from a 'fencepost up' that has ended: start it again, or "
                                      "delete the file",
                                      file)));
}

// Relative paths of a configuration are relative to the working directory of `up`.
class InDirectory {
 public:
  // On failure the working directory stays as it was.
  InDirectory(const fs::path& directory, std::error_code& failure) : before_(working_directory()) {
    fs::current_path(directory, failure);
  }
  ~InDirectory() {
    std::error_code removed;  // nothing to return to
    fs::current_path(before_, removed);
  }
  InDirectory(const InDirectory&) = delete;
  InDirectory& operator=(const InDirectory&) = delete;

 private:
  // Empty if it was removed.
  static fs::path working_directory() {
    std::error_code removed;
    return fs::current_path(removed);
  }

  fs::path before_;
};

Error directory_unusable(const fs::path& directory, const std::error_code& failure) {
  return conflict("up_directory_unusable",
                  fmt::format("cannot enter the working directory of 'fencepost up', {}: {}. Its settings are relative "
                              "to it: start it again in a directory that exists",
                              quote(directory.string(), 256), failure.message()));
}

void make_absolute(std::string& path) {
  if (!path.empty()) path = fs::absolute(path).string();
}

}  // namespace

Result<Config> load_up_config(const UpSettings& settings) {
  auto config = load_command_config(settings.from, {"database.dsn"});
  if (!config || !settings.dev_chain) return config;
  config->dev = true;
  for (const auto& account : evm::dev_accounts()) config->keystore.dev_keys.emplace_back(account.private_key);
  return config;
}

json::object settings_json(const UpSettings& settings, const Config& config) {
  return {{"settings", json::object{{"file", settings.from.file},
                                    {"overrides", flags_json(settings.from.overrides)},
                                    {"defaults", flags_json(settings.from.defaults)},
                                    {"devChain", settings.dev_chain}}},
          {"config", config.to_yaml()}};
}

Result<Config> config_of_up(const fs::path& data_dir) {
  const auto up = read_live_up(data_dir);
  if (!up) return fail(up.error());
  const JsonReader reader(*up, "up.json");
  const auto written = reader.field("settings");
  UpSettings settings{.from = {.file = written.field("file").string(kMostYaml),
                               .overrides = read_flags(written.field("overrides")),
                               .defaults = read_flags(written.field("defaults"))},
                      .dev_chain = written.field("devChain").boolean()};
  settings.from.environment = environment_of(proc_of(reader));
  std::error_code failure;
  const auto directory = fs::read_symlink(proc_of(reader) / "cwd", failure);  // "/x (deleted)" if it was removed
  if (failure) return fail(directory_unusable(proc_of(reader) / "cwd", failure));
  const InDirectory there(directory, failure);
  if (failure) return fail(directory_unusable(directory, failure));
  auto config = load_up_config(settings);
  if (!config) return config;
  make_absolute(config->keystore.directory);
  make_absolute(config->email.directory);
  return config;
}

Result<std::string> yaml_of_up(const fs::path& data_dir) {
  const auto up = read_live_up(data_dir);
  if (!up) return fail(up.error());
  return JsonReader(*up, "up.json").field("config").string(kMostYaml);
}

}  // namespace fencepost
