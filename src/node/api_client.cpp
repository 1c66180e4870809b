#include "node/api_client.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/json.hpp"
#include "base/json_reader.hpp"
#include "http/client.hpp"
#include "node/text_table.hpp"
#include "runtime/runtime.hpp"

namespace fencepost {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr std::size_t kMaxAnswerBytes = 64 << 20;

std::filesystem::path announcement_in(const std::string& data_dir) {
  return std::filesystem::path(data_dir) / "up.json";
}

Result<ApiAccess> announced_by_up(const std::string& data_dir) {
  const auto file = announcement_in(data_dir);
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.empty()) {
    return fail(not_found("not_up", fmt::format("there is no {}: is 'fencepost up' running there?", file.string())));
  }
  const auto document = parse_json(text, text.size());
  if (!document) return fail(document.error());
  const JsonReader reader(*document, "up.json");
  return ApiAccess{reader.field("url").string(), Secret(reader.field("apiKey").string())};
}

std::string value_or_empty(const std::map<std::string, std::string>& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

ErrorKind kind_of(unsigned status) {
  switch (status) {
    case 401:
      return ErrorKind::kUnauthenticated;
    case 403:
      return ErrorKind::kForbidden;
    case 404:
      return ErrorKind::kNotFound;
    case 409:
      return ErrorKind::kConflict;
    case 413:
      return ErrorKind::kTooLarge;
    case 422:
      return ErrorKind::kUnprocessable;
    case 429:
      return ErrorKind::kRateLimited;
    case 502:
    case 503:
      return ErrorKind::kUnavailable;
    case 504:
      return ErrorKind::kTimeout;
    default:
      return status < 500 ? ErrorKind::kInvalid : ErrorKind::kInternal;
  }
}

std::string text_of(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

// Nothing when it is no problem document of ours. It goes to a terminal, and may quote a contract: printable.
std::optional<Error> read_problem(unsigned status, const json::value& document) {
  const auto* object = document.if_object();
  if (object == nullptr || !object->contains("code")) return std::nullopt;
  Error error{kind_of(status), text_of(object->at("code")), {}, {}, {}, {}};
  error.message = error.code;
  for (const auto& [key, value] : *object) {
    if (key == "detail") {
      error.message = printable(text_of(value));
    } else if (key != "type" && key != "title" && key != "status" && !value.is_null()) {
      error.with(std::string(key), printable(text_of(value)));
    }
  }
  return error;
}

awaitable<Result<http::ClientResponse>> send(http::ClientRequest request) {
  const auto executor = co_await this_executor();
  http::Client client(executor, {.max_body_bytes = kMaxAnswerBytes});
  auto response = co_await client.send(std::move(request));
  co_return response;
}

Result<json::value> call(const ApiAccess& access, http::ClientRequest request) {
  request.url = access.url + request.url;
  request.headers.emplace_back("Authorization", fmt::format("Bearer {}", access.api_key.reveal()));
  auto response = run_blocking(send(std::move(request)));
  if (!response) {
    return fail(std::move(response.error()).with("url", access.url));
  }
  return read_answer(response->status, response->body);
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
  if (access.url.empty() && access.api_key.empty() && std::filesystem::exists(announcement_in(usual_data_dir))) {
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

Result<json::value> ApiClient::get(const std::string& target, std::chrono::milliseconds timeout) {
  http::ClientRequest request;
  request.url = target;
  request.idempotent = true;
  request.timeout = timeout;
  return call(access_, std::move(request));
}

Result<json::value> ApiClient::post(const std::string& target, const json::value& body, bool repeatable) {
  http::ClientRequest request;
  request.method = "POST";
  request.url = target;
  request.headers = {{"Content-Type", "application/json"}};
  request.body = json::serialize(body);
  request.idempotent = repeatable;
  return call(access_, std::move(request));
}

Result<json::value> read_answer(unsigned status, std::string_view body) {
  const bool success = status >= 200 && status < 300;
  if (success && body.empty()) return json::value(nullptr);
  auto document = parse_json(body, kMaxAnswerBytes);
  if (success && document) return std::move(*document);
  if (!success && document) {
    if (auto problem = read_problem(status, *document)) return fail(std::move(*problem));
  }
  return fail(unavailable("bad_answer", fmt::format("the server's answer (status {}) is not one of Fencepost's: does "
                                                    "the URL point to a node?",
                                                    status)));
}

}  // namespace fencepost
