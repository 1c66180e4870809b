#include "http/message.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/id_text.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "http/problem.hpp"

namespace fencepost::http {
namespace {

constexpr std::array<std::pair<std::string_view, Verb>, 7> kVerbs{{{"GET", Verb::kGet},
                                                                   {"HEAD", Verb::kHead},
                                                                   {"POST", Verb::kPost},
                                                                   {"PUT", Verb::kPut},
                                                                   {"PATCH", Verb::kPatch},
                                                                   {"DELETE", Verb::kDelete},
                                                                   {"OPTIONS", Verb::kOptions}}};

constexpr std::size_t kKeepBody = 64 * 1024;  // of a large body's memory, after its request

// Whether a segment, with its slash, is the route's secret or has the prefix of an API key. The second rule covers
// paths that no route matched, such as one with a mistyped chain id.
bool is_credential(std::string_view segment, const std::optional<std::string>& secret) {
  const auto decoded = percent_decode(segment.substr(std::min<std::size_t>(1, segment.size())));
  if (!decoded) return true;  // unreadable: show nothing of it
  return (secret && *decoded == *secret) || decoded->find(kApiKeyPrefix) != std::string::npos;
}

Error bad_target(std::string message) {
  return invalid("bad_target", std::move(message));
}

}  // namespace

std::string_view to_string(Verb verb) {
  for (const auto& [name, value] : kVerbs) {
    if (value == verb) return name;
  }
  return "OTHER";
}

Verb parse_verb(std::string_view method) {
  for (const auto& [name, value] : kVerbs) {
    if (name == method) return value;
  }
  return Verb::kOther;
}

std::optional<std::string_view> Request::header(std::string_view name) const {
  for (const auto& field : fields_) {
    if (equal_ignoring_case(name_of(field), name)) return value_of(field);
  }
  return std::nullopt;
}

std::vector<std::string_view> Request::headers(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& field : fields_) {
    if (equal_ignoring_case(name_of(field), name)) values.push_back(value_of(field));
  }
  return values;
}

std::string_view Request::param(std::string_view name) const {
  for (const auto& [key, value] : params_) {
    if (key == name) return value;
  }
  throw Exception(internal("no_such_parameter", fmt::format("the route has no parameter '{}'", name)));
}

std::int64_t Request::param_id(std::string_view name) const {
  const auto id = parse_id(param(name));
  if (!id) throw Exception(internal("not_an_id", fmt::format("parameter '{}' is not declared as id", name)));
  return *id;
}

Uuid Request::param_uuid(std::string_view name) const {
  const auto uuid = Uuid::parse(param(name));
  if (!uuid) throw Exception(internal("not_a_uuid", fmt::format("parameter '{}' is not declared as uuid", name)));
  return *uuid;
}

std::optional<std::string_view> Request::path_secret() const {
  return path_secret_ ? std::optional<std::string_view>(*path_secret_) : std::nullopt;
}

std::string Request::log_path() const {
  std::string out;
  auto rest = path();
  while (!rest.empty()) {
    const auto end = std::min(rest.find('/', 1), rest.size());
    const auto segment = rest.substr(0, end);
    out += is_credential(segment, path_secret_) ? std::string_view("/***") : segment;
    rest.remove_prefix(end);
  }
  return out;
}

std::optional<std::string_view> Request::query(std::string_view name) const {
  for (const auto& [key, value] : query_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Result<std::optional<std::string_view>> Request::single_query(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const auto& [key, value] : query_) {
    if (key != name) continue;
    if (found) return fail(bad_parameter(name, "one value", "several"));
    found = value;
  }
  return found;
}

Result<boost::json::value> Request::json() const {
  return parse_json(body_, body_.size());  // the server has bounded it
}

void Request::reset() {
  verb_ = Verb::kGet;
  target_.clear();
  path_begin_ = path_size_ = 0;
  header_text_.clear();
  fields_.clear();
  query_.clear();
  params_.clear();
  path_secret_.reset();
  body_.clear();
  if (body_.capacity() > kKeepBody) body_.shrink_to_fit();
  id_.clear();
  principal_.reset();
}

Result<void> Request::set_target(std::string_view target) {
  target_ = target;
  query_.clear();
  std::string_view path = target_;
  // A proxy sends the absolute form, which names the same resource as its path.
  if (const auto scheme = path.find("://"); scheme != std::string_view::npos && !path.starts_with('/')) {
    path.remove_prefix(std::min(path.find_first_of("/?", scheme + 3), path.size()));
  }
  if (!path.starts_with('/') && target_ != "*") return fail(bad_target("the target has no path that starts with '/'"));
  if (path.find('#') != std::string_view::npos) return fail(bad_target("the target has a fragment"));
  const auto mark = std::min(path.find('?'), path.size());
  path_begin_ = static_cast<std::size_t>(path.data() - target_.data());
  path_size_ = mark;
  if (mark == path.size()) return {};
  auto query = parse_query(path.substr(mark + 1));
  if (!query) return fail(std::move(query.error()));
  query_ = std::move(*query);
  return {};
}

void Request::add_header(std::string_view name, std::string_view value) {
  const auto start = static_cast<std::uint32_t>(header_text_.size());
  header_text_ += name;
  const auto middle = static_cast<std::uint32_t>(header_text_.size());
  header_text_ += value;
  fields_.push_back({start, middle, static_cast<std::uint32_t>(header_text_.size())});
}

Response Response::json(unsigned status, const boost::json::value& value) {
  return text(status, boost::json::serialize(value), "application/json");
}

Response Response::text(unsigned status, std::string text, std::string content_type) {
  Response response;
  response.status = status;
  response.headers.emplace_back("Content-Type", std::move(content_type));
  response.body = std::move(text);
  return response;
}

Response Response::no_content() {
  Response response;
  response.status = 204;
  return response;
}

Response Response::events(StreamFunction stream) {
  Response response;
  response.headers.emplace_back("Content-Type", "text/event-stream");
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("X-Accel-Buffering", "no");  // asks a proxy in front not to hold events back
  response.stream = std::move(stream);
  return response;
}

Response Response::problem(const Error& error, const Request& request) {
  return make_problem(error, request.id());
}

std::string_view reason_phrase(unsigned status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

Error bad_parameter(std::string_view name, std::string_view expected, std::string_view got) {
  return invalid("invalid_parameter", fmt::format("{}: expected {}, got {}", name, expected, quote(got)))
      .with("parameter", std::string(name));
}

}  // namespace fencepost::http
