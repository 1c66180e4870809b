#include "cli/api_access.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "base/json_reader.hpp"

#include "dev/up_json.hpp"

namespace fencepost::cli {
namespace {

Result<ApiAccess> announced_by_up(const std::string& data_dir) {
  const auto document = read_up_json(data_dir);
  if (!document) return fail(document.error());
  const JsonReader reader(*document, "up.json");
  return ApiAccess{reader.field("url").string(), Secret(reader.field("apiKey").string())};
}

std::string value_or_empty(const std::map<std::string, std::string>& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

}  // namespace

Result<ApiAccess> find_api(const ApiFlags& flags, const std::map<std::string, std::string>& environment,
                           const std::string& usual_data_dir) {
  ApiAccess access{flags.url, Secret(flags.api_key)};
  const auto fill_in = [&](ApiAccess other) {
    if (access.url.empty()) access.url = std::move(other.url);
    if (access.api_key.empty()) access.api_key = std::move(other.api_key);
  };
  if (!flags.data_dir.empty()) {
    auto up = announced_by_up(flags.data_dir);
    if (!up) return fail(up.error());
    fill_in(std::move(*up));
  }
  fill_in({value_or_empty(environment, "FENCEPOST_URL"), Secret(value_or_empty(environment, "FENCEPOST_API_KEY"))});
  // Only as a whole: the key of one node is not for another.
  if (access.url.empty() && access.api_key.empty() && std::filesystem::exists(up_json_file(usual_data_dir))) {
    auto up = announced_by_up(usual_data_dir);
    if (!up) return fail(up.error());
    fill_in(std::move(*up));
  }
  if (access.url.empty() || access.api_key.empty()) {
    return fail(invalid("api_unknown", fmt::format("which {}? Give --url and --api-key, set FENCEPOST_URL and "
                                                   "FENCEPOST_API_KEY, or give --data-dir of a running 'up'",
                                                   access.url.empty() ? "node" : "API key")));
  }
  while (access.url.ends_with('/')) access.url.pop_back();
  return access;
}

}  // namespace fencepost::cli
