#include "doctor/database_probe.hpp"

#include <algorithm>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "base/clock.hpp"
#include "node/database_session.hpp"
#include "pg/array.hpp"
#include "pg/error.hpp"
#include "pg/listener.hpp"
#include "pg/migrations.hpp"
#include "runtime/metrics.hpp"

#include "doctor/database.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;

constexpr auto kStatementTimeout = 5s;
constexpr auto kProofTimeout = 2s;
constexpr int kClockSamples = 3;

constexpr pg::Statement kServerFacts{"doctor_server", R"(
  SELECT current_setting('server_version_num')::int              AS version_num,
         split_part(current_setting('server_version'), ' ', 1)   AS version,
         pg_is_in_recovery()                                     AS standby,
         current_setting('transaction_read_only')::bool          AS read_only,
         current_user                                            AS role,
         current_schema()                                        AS schema,
         coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
         least(current_setting('max_connections')::int
                 - current_setting('superuser_reserved_connections')::int,
               nullif(r.rolconnlimit, -1),
               nullif(d.datconnlimit, -1))                       AS connection_limit,
         pg_notification_queue_usage()                           AS notification_queue,
         current_setting('fsync')::bool                          AS fsync,
         current_setting('synchronous_commit') <> 'off'          AS synchronous_commit
    FROM pg_roles r, pg_database d
   WHERE r.rolname = current_user
     AND d.datname = current_database())"};

// For each table that exists, the rights that the role lacks.
constexpr pg::Statement kTableRights{"doctor_table_rights", R"(
  SELECT t.name,
         NOT has_table_privilege(to_regclass(t.name), 'SELECT') AS no_select,
         NOT has_table_privilege(to_regclass(t.name), 'INSERT') AS no_insert,
         NOT has_table_privilege(to_regclass(t.name), 'UPDATE') AS no_update,
         NOT has_table_privilege(to_regclass(t.name), 'DELETE') AS no_delete
    FROM unnest($1::text[]) AS t(name)
   WHERE to_regclass(t.name) IS NOT NULL)"};

// No row: the schema is not there yet. Inserting into pending_transfers is the right of each role that may pay.
constexpr pg::Statement kEconomyRights{"doctor_economy_rights", R"(
  SELECT has_schema_privilege(n.oid, 'USAGE')
         AND NOT EXISTS (SELECT FROM pg_class AS c
                          WHERE c.relnamespace = n.oid
                            AND c.relname IN ('pending_transfers', 'transfer_status', 'transfer_denials', 'accounts',
                                              'transactions', 'entries', 'guild_settings', 'operations', 'transfer_work')
                            AND NOT has_table_privilege(c.oid, 'SELECT'))
         AND NOT EXISTS (SELECT FROM pg_proc AS p
                          WHERE p.pronamespace = n.oid
                            AND p.proowner = n.nspowner
                            AND p.proname LIKE 'fn\_%'
                            AND NOT has_function_privilege(p.oid, 'EXECUTE')) AS usable,
         ARRAY(SELECT coalesce(g.rolname::text, '')  -- no role has the oid 0: it stands for PUBLIC
                 FROM (SELECT a.grantee
                         FROM pg_class AS c
                        CROSS JOIN LATERAL (SELECT * FROM aclexplode(c.relacl)
                                             UNION ALL
                                            SELECT x.*
                                              FROM pg_attribute AS t
                                             CROSS JOIN aclexplode(t.attacl) AS x
                                             WHERE t.attrelid = c.oid) AS a
                        WHERE c.relnamespace = n.oid
                          AND c.relkind = 'r'
                          AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE')
                          AND a.grantee <> c.relowner
                          AND NOT (a.privilege_type = 'INSERT' AND c.relname = 'pending_transfers')
                        UNION
                       SELECT a.grantee
                         FROM pg_proc AS p
                        CROSS JOIN aclexplode(p.proacl) AS a
                        WHERE p.pronamespace = n.oid
                          AND p.proname LIKE '\_%'
                          AND a.grantee <> p.proowner) AS w
                 LEFT JOIN pg_roles AS g ON g.oid = w.grantee
                ORDER BY 1) AS writers
    FROM pg_namespace AS n
   WHERE n.nspname = 'economy')"};

constexpr pg::Statement kClock{"doctor_clock", "SELECT clock_timestamp()"};

constexpr std::string_view kHistoryTable = "schema_migration";
constexpr std::string_view kLogTable = "event";

pg::ConnectOptions doctor_session(const Config& config) {
  auto options = session_options(config);
  options.application_name = "fencepost doctor";
  options.statement_timeout = kStatementTimeout;
  return options;
}

std::vector<std::string> our_tables() {
  std::vector<std::string> tables{std::string(kHistoryTable)};
  for (const auto& migration : pg::embedded_migrations()) {
    std::ranges::move(tables_created_by(migration.sql), std::back_inserter(tables));
  }
  return tables;
}

void read_server(const pg::Row& row, DatabaseFacts& facts) {
  facts.version_num = row.get<int>("version_num");
  facts.version = row.get<std::string>("version");
  facts.standby = row.get<bool>("standby");
  facts.read_only = row.get<bool>("read_only");
  facts.role = row.get<std::string>("role");
  facts.schema = row.get<std::optional<std::string>>("schema");
  facts.may_create = row.get<bool>("may_create");
  facts.connection_limit = row.get<int>("connection_limit");
  facts.notification_queue = row.get<double>("notification_queue");
  facts.fsync = row.get<bool>("fsync");
  facts.synchronous_commit = row.get<bool>("synchronous_commit");
}

// A node reads the migration history and inserts into it while it migrates; it never updates or deletes a row of it or
// of the log of events.
TableRights read_rights(const pg::Row& row, bool migrating) {
  TableRights rights{row.get<std::string>("name"), {}};
  const bool history = rights.table == kHistoryTable;
  if (row.get<bool>("no_select")) rights.missing.emplace_back("SELECT");
  if (row.get<bool>("no_insert") && (!history || migrating)) rights.missing.emplace_back("INSERT");
  const bool append_only = history || rights.table == kLogTable;
  if (row.get<bool>("no_update") && !append_only) rights.missing.emplace_back("UPDATE");
  if (row.get<bool>("no_delete") && !append_only) rights.missing.emplace_back("DELETE");
  return rights;
}

awaitable<std::optional<Error>> ask_migrations(pg::Pool& pool) {
  try {
    const auto checked = co_await pg::check_migrations(pool, pg::embedded_migrations());
    co_return checked ? std::nullopt : std::optional(checked.error());
  } catch (const pg::QueryError& e) {
    co_return e.error();  // no right to read the table, or another program owns a table of that name
  }
}

// Uses the sample with the shortest round trip: its uncertainty is the smallest.
awaitable<> ask_clock(pg::Pool& pool, DatabaseFacts& facts) {
  const SystemClock clock;
  facts.clock_uncertainty = std::chrono::microseconds::max();
  for (int i = 0; i < kClockSamples; ++i) {
    const auto before = clock.now();
    const auto answer = co_await pool.query(kClock);
    const auto half = (clock.now() - before) / 2;
    if (half >= facts.clock_uncertainty) continue;
    facts.clock_uncertainty = half;
    facts.clock_ahead = answer.one().get<TimePoint>(0) - (before + half);
  }
}

awaitable<DatabaseFacts> gather(pg::Pool& pool, std::chrono::milliseconds retention) {
  DatabaseFacts facts;
  const auto server = co_await pool.query(kServerFacts);
  read_server(server.one(), facts);
  facts.newest_migration = pg::embedded_migrations().empty() ? "none" : pg::embedded_migrations().back().name;
  facts.migrations = co_await ask_migrations(pool);
  const bool migrating = facts.migrations && facts.migrations->code == "migrations_pending";
  const auto rights = co_await pool.query(kTableRights, our_tables());
  for (const auto row : rights) facts.tables.push_back(read_rights(row, migrating));
  const auto economy = co_await pool.query(kEconomyRights);
  for (const auto row : economy) {
    facts.economy = {row.get<bool>("usable"), pg::get_array<std::string>(row, "writers")};
  }
  co_await ask_clock(pool, facts);
  if (!facts.migrations) {
    const auto partitions = co_await outbox::list_event_partitions(pool, retention);
    facts.event_log = outbox::report_on(partitions);
    facts.horizon = co_await outbox::find_horizon_holder(pool);
  }
  co_return facts;
}

awaitable<> open_once(pg::Connector& connector) {
  const auto executor = co_await this_executor();
  auto session = co_await connector.connect(executor);
  const pg::OwnedConnection connection(std::move(session), {});
}

awaitable<pg::Listener::Mode> try_listening(pg::Connector& connector, Metrics& metrics) {
  const auto executor = co_await this_executor();
  const auto swept = std::make_shared<Completion<bool>>(executor);
  pg::Listener listener(executor, connector, {.answer_timeout = kProofTimeout}, metrics);
  listener.subscribe("fencepost_doctor", {}, [swept] { swept->complete(true); });
  listener.start();
  const auto patience = 2 * connector.options().connect_timeout + 2 * kProofTimeout;
  co_await swept->wait(std::chrono::steady_clock::now() + patience);  // the listener sweeps once it knows its mode
  const auto mode = listener.mode();
  co_await listener.stop();
  co_return mode;
}

Finding check_listen(const Config& config, pg::Connector& connector, Metrics& metrics) {
  auto mode = pg::Listener::Mode::kConnecting;
  if (config.database.listen == ListenMode::kEnabled) mode = run_blocking(try_listening(connector, metrics));
  return assess_listen(config.database.listen, mode);
}

}  // namespace

std::string dsn_problem(std::string_view dsn) {
  using Options = std::unique_ptr<PQconninfoOption, decltype([](PQconninfoOption* o) { PQconninfoFree(o); })>;
  char* complaint = nullptr;
  const Options options(PQconninfoParse(std::string(dsn).c_str(), &complaint));
  if (!options) {
    // libpq's message is dropped: it quotes text that it cannot parse, which may be part of a password.
    PQfreemem(complaint);
    return "database.dsn is neither a URI (postgresql://user:password@host/database) nor a list of key=value pairs";
  }
  for (const auto* option = options.get(); option->keyword != nullptr; ++option) {
    const std::string_view value = option->val == nullptr ? "" : option->val;
    if (std::string_view(option->keyword) == "host" && value.find('@') != std::string_view::npos) {
      return "the host in database.dsn contains '@'";
    }
  }
  return "";
}

Findings check_database(const Config& config) {
  if (const auto problem = dsn_problem(config.database.dsn.reveal()); !problem.empty()) {
    return {failed("database", problem, "write special characters of a password in a URI as %XX: '@' is %40")};
  }
  Metrics metrics;
  pg::Connector connector(doctor_session(config));
  Findings findings;
  try {
    run_blocking(open_once(connector));  // the pool's error would hide libpq's reason
    const auto ask = [&](pg::Pool& pool) { return gather(pool, config.events.retention); };
    const auto facts = run_blocking(run_with_pool(connector, metrics, ask));
    const auto needed = connections_needed(config, std::thread::hardware_concurrency());
    findings = assess_database(facts, needed);
    if (facts.event_log) {
      findings.push_back(assess_event_log(*facts.event_log));
      findings.push_back(assess_horizon(facts.horizon));
    }
  } catch (const Exception& e) {
    findings.push_back(assess_unreachable(e.error().cause.empty() ? e.error().message : e.error().cause));
    findings.push_back(warned("listen", "not checked: the database did not answer", ""));
    return findings;
  }
  findings.push_back(check_listen(config, connector, metrics));
  return findings;
}

}  // namespace fencepost::doctor
