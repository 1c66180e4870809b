#include "cli/api_access.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "base/json_reader.hpp"

#include "dev/up_json.hpp"

namespace fencepost::cli {
namespace {

std::string value_or_empty(const std::map<std::string, std::string>& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

Result<ApiAccess> announced_by_up(const std::string& data_dir) {
  const auto document = read_up_json(data_dir);
  if (!document) return fail(document.error());
  const auto file = up_json_file(data_dir).string();
  const JsonReader reader(*document, file);
  return ApiAccess{reader.field("url").string(), Secret(reader.field("apiKey").string()), file, file};
}

ApiAccess given_by_environment(const std::map<std::string, std::string>& environment) {
  return {value_or_empty(environment, "FENCEPOST_URL"), Secret(value_or_empty(environment, "FENCEPOST_API_KEY")),
          "FENCEPOST_URL", "FENCEPOST_API_KEY"};
}

// Fills the empty members of `access` from `other`.
void fill_in(ApiAccess& access, ApiAccess other) {
  if (access.url.empty()) {
    access.url = std::move(other.url);
    access.url_from = std::move(other.url_from);
  }
  if (access.api_key.empty()) {
    access.api_key = std::move(other.api_key);
    access.key_from = std::move(other.key_from);
  }
}

Error incomplete(const ApiAccess& access, const std::string& usual_data_dir) {
  auto found = fmt::format("No 'fencepost up' is running in ./{}.", usual_data_dir);
  if (!access.url.empty()) found = access.url_from + " gives a URL without a key.";
  if (!access.api_key.empty()) found = access.key_from + " gives a key without a URL.";
  return invalid("api_unknown",
                 fmt::format("the {} is not known. {} Give --data-dir of a running 'up', or --url and --api-key, or "
                             "set FENCEPOST_URL and FENCEPOST_API_KEY",
                             access.url.empty() ? "URL of the node" : "API key", found));
}

}  // namespace

std::string ApiAccess::from() const {
  return url_from == key_from ? url_from : fmt::format("{} (key from {})", url_from, key_from);
}

Result<ApiAccess> find_api(const ApiFlags& flags, const std::map<std::string, std::string>& environment,
                           const std::string& usual_data_dir) {
  ApiAccess access{flags.url, Secret(flags.api_key), "--url", "--api-key"};
  if (!flags.data_dir.empty()) {
    auto up = announced_by_up(flags.data_dir);
    if (!up) return fail(up.error());
    fill_in(access, std::move(*up));
  }
  fill_in(access, given_by_environment(environment));
  // URL and key only together: the key of one node must not be sent to another.
  if (access.url.empty() && access.api_key.empty() && std::filesystem::exists(up_json_file(usual_data_dir))) {
    auto up = announced_by_up(usual_data_dir);
    if (!up) return fail(up.error());
    fill_in(access, std::move(*up));
  }
  if (access.url.empty() || access.api_key.empty()) return fail(incomplete(access, usual_data_dir));
  while (access.url.ends_with('/')) access.url.pop_back();
  return access;
}

}  // namespace fencepost::cli
