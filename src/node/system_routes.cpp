#include "node/system_routes.hpp"

#include <memory>

#include <fmt/format.h>

#include "base/embedded.hpp"
#include "base/json_reader.hpp"
#include "http/request_reader.hpp"
#include "http/route_table.hpp"
#include "pg/migrations.hpp"
#include "runtime/log.hpp"

namespace fencepost {

std::span<const EmbeddedFile> api_files();  // generated from api/ by the build

namespace {

namespace json = boost::json;
using http::Request;
using http::Response;
using http::Verb;

json::array to_json(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

// null: no restriction.
json::value restriction_json(const http::Principal& principal, std::string_view kind) {
  const auto* const ids = principal.restriction(kind);
  return ids != nullptr ? json::value(to_json(*ids)) : json::value(nullptr);
}

// Ready means: the database answers and its schema is current. The route is open to every caller, so a positive answer
// is cached for a second.
class Readiness {
 public:
  explicit Readiness(const SystemParts& parts) : parts_(parts) {}

  awaitable<Result<void>> check() {
    if (!parts_.serving) co_return fail(not_now("the node is starting or stopping: retry later"));
    if (!parts_.database.pool().connected()) co_return fail(not_now("the connection to the database is lost"));
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    if (now.count() < good_until_.load()) co_return Result<void>{};
    const auto current = co_await pg::check_migrations(parts_.database.pool(), pg::embedded_migrations());
    if (!current) co_return fail(not_now(current.error().message).with("cause", current.error().code));
    good_until_ = (now + std::chrono::seconds(1)).count();
    co_return Result<void>{};
  }

 private:
  static Error not_now(std::string why) {
    return unavailable("not_ready", std::move(why)).after(std::chrono::seconds(1));
  }

  SystemParts parts_;
  std::atomic<std::chrono::steady_clock::rep> good_until_{0};
};

struct Handling {
  SystemParts parts;
  std::shared_ptr<Readiness> readiness;
};

awaitable<Response> index(Request&, Handling with) {
  co_return Response::text(
      200, fmt::format("Fencepost {}\n\n"
                       "/openapi.json    description of the API\n"
                       "/api/v1/version  this version\n"
                       "/livez /readyz   health\n"
                       "{}",
                       version(),
                       with.parts.metrics_route == MetricsRoute::kNone ? "" : "/metrics         for Prometheus\n"));
}

awaitable<Response> livez(Request&, Handling) {
  co_return Response::json(200, {{"status", "alive"}});
}

awaitable<Response> readyz(Request& request, Handling with) {
  const auto ready = co_await with.readiness->check();
  if (!ready) co_return Response::problem(ready.error(), request);
  co_return Response::json(200, {{"status", "ready"}});
}

awaitable<Response> openapi(Request&, Handling) {
  co_return Response::text(200, std::string(openapi_document()), "application/json");
}

awaitable<Response> get_version(Request& request, Handling) {
  http::check_query(request, {});
  const auto& migrations = pg::embedded_migrations();
  co_return Response::json(
      200, {{"name", "fencepost"}, {"version", std::string(version())}, {"schema", migrations.back().name}});
}

awaitable<Response> whoami(Request& request, Handling) {
  http::check_query(request, {});
  const auto& principal = *request.principal();
  co_return Response::json(200, {{"keyId", principal.id},
                                 {"label", principal.label},
                                 {"scopes", to_json(principal.scopes)},
                                 {"signers", restriction_json(principal, "signer")},
                                 {"guilds", restriction_json(principal, "guild")},
                                 {"contracts", restriction_json(principal, "contract")}});
}

awaitable<Response> get_log_level(Request& request, Handling) {
  http::check_query(request, {});
  co_return Response::json(200, {{"level", std::string(log::to_string(log::level()))}});
}

awaitable<Response> put_log_level(Request& request, Handling) {
  http::check_query(request, {});
  const auto body = http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"level"});
  const auto level = log::parse_level(in.field("level").string());
  if (!level) in.field("level").reject(level.error().code, level.error().message);
  log::set_level(*level);
  log::info("log level changed",
            {{"level", log::to_string(*level)}, {"by", request.principal()->label}, {"httpRequestId", request.id()}});
  co_return Response::json(200, {{"level", std::string(log::to_string(*level))}});
}

constexpr http::RouteRow<Handling> kSystemRoutes[] = {
    {Verb::kGet, "/", "open", index},
    {Verb::kGet, "/livez", "open", livez},
    {Verb::kGet, "/readyz", "open", readyz},
    {Verb::kGet, "/openapi.json", "open", openapi},
    {Verb::kGet, "/api/v1/version", "open", get_version},
    {Verb::kGet, "/api/v1/whoami", "authenticated", whoami},
    {Verb::kGet, "/api/v1/log-level", "admin", get_log_level},
    {Verb::kPut, "/api/v1/log-level", "admin", put_log_level},
};

}  // namespace

void add_system_routes(http::Router& router, const SystemParts& parts) {
  http::add_table<Handling>(router, kSystemRoutes, {parts, std::make_shared<Readiness>(parts)});
  add_metrics_route(router, parts.metrics, parts.metrics_route);
}

void add_metrics_route(http::Router& router, Metrics& metrics, MetricsRoute route) {
  if (route == MetricsRoute::kNone) return;
  const auto access = route == MetricsRoute::kOpen ? http::Access::open() : http::Access::scope("metrics:read");
  router.add({Verb::kGet, "/metrics", access, [&metrics](Request&) -> awaitable<Response> {
                co_return Response::text(200, metrics.scrape(), "text/plain; version=0.0.4; charset=utf-8");
              }});
}

std::string_view openapi_document() {
  for (const auto& file : api_files()) {
    if (file.name == "openapi.json") return file.content;
  }
  throw Exception(internal("no_openapi", "the program was built without api/openapi.json"));
}

std::string_view version() {
  return FENCEPOST_VERSION;
}

}  // namespace fencepost
