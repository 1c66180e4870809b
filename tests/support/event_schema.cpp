#include "tests/support/event_schema.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "outbox/feed/event_pages.hpp"
#include "runtime/read_file.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

const json::value& document() {
  static const auto parsed = json::parse(read_file(source_dir() / "api/openapi.json"));
  return parsed;
}

// Members of the value that its schema does not list.
void unlisted(const JsonSchema& schemas, const json::value& schema, const json::value& value, const std::string& path,
              std::vector<std::string>& out) {
  const auto* reference = schema.as_object().if_contains("$ref");
  const auto& rules = reference == nullptr ? schema : schemas.resolve(reference->as_string());
  const auto* listed = rules.as_object().if_contains("properties");
  if (!value.is_object() || listed == nullptr) return;
  for (const auto& [name, member] : value.as_object()) {
    const auto* rule = listed->as_object().if_contains(name);
    const auto at = path + "/" + std::string(name);
    if (rule == nullptr) {
      out.push_back(at + " is not documented");
    } else {
      unlisted(schemas, *rule, member, at, out);
    }
  }
}

}  // namespace

std::vector<std::string> problems_of_event(const json::value& envelope) {
  const JsonSchema schemas(document());
  const auto* type = envelope.as_object().if_contains("type");
  const auto* webhook =
      type == nullptr ? nullptr : document().at("webhooks").as_object().if_contains(type->as_string());
  if (webhook == nullptr) return {"its type is not documented: " + json::serialize(envelope)};
  const auto& schema =
      webhook->at("post").at("requestBody").at("content").at("application/cloudevents+json").at("schema");
  auto problems = schemas.check(schema, envelope);
  unlisted(schemas, schema, envelope, "", problems);
  for (auto& problem : problems) problem = fmt::format("{} in {}", problem, json::serialize(envelope));
  return problems;
}

std::vector<std::string> problems_of_log(const std::string& dsn) {
  std::vector<std::string> out;
  if (exec_sql(dsn, "SELECT to_regclass('event_seq') IS NOT NULL") != "t") return out;
  // Consumers that are told that a transaction is stuck are told when it is over.
  const auto untold = exec_sql(dsn, R"(
    SELECT coalesce(string_agg(subject, ' '), '')
      FROM (SELECT subject
              FROM event
             WHERE subject LIKE 'tx/%'
             GROUP BY subject
            HAVING count(*) FILTER (WHERE type = 'TxStuck')
                   <> count(*) FILTER (WHERE type = 'TxResumed')
                      + count(*) FILTER (WHERE from_state = 'STUCK' AND to_state IN ('CONFIRMED', 'FAILED_FINAL'))
                      + CASE WHEN (array_agg(to_state ORDER BY seq DESC) FILTER (WHERE to_state IS NOT NULL))[1] = 'STUCK'
                             THEN 1 ELSE 0 END) AS s)");
  if (!untold.empty()) out.push_back("TxStuck without TxResumed or an end: " + untold);
  const outbox::EventCatalog none({});  // only filters need the domains
  with_pool(dsn, {}, [&](pg::Pool& pool) -> awaitable<> {
    for (std::int64_t after = 0;;) {
      const auto events = co_await outbox::read_log(pool, none, after, 1'000'000'000, 1000);
      if (events.empty()) co_return;
      after = events.back().seq;
      for (const auto& event : events) {
        for (auto& problem : problems_of_event(json::parse(event.envelope))) {
          if (out.size() < 10) out.push_back(std::move(problem));
        }
      }
    }
  });
  return out;
}

}  // namespace fencepost::test
