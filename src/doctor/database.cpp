#include "doctor/database.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;

constexpr auto kCheck = "database";
constexpr int kOldestVersion = 140000;
constexpr auto kClockTolerance = 1s;
constexpr double kFullQueue = 0.5;

struct Hint {
  std::string_view sign;  // a substring of libpq's message
  std::string_view fix;
};

// The first match wins.
constexpr std::array kHints{
    Hint{"password", "check user and password in database.dsn; special characters in a URI are written as %XX"},
    Hint{"could not translate host name", "check the host in database.dsn, and that this machine can resolve it"},
    Hint{"Peer authentication",
         "connect over TCP with a password, or run Fencepost as the system user with the role's name"},
    Hint{"no pg_hba.conf entry",
         "allow this host, user and database in the server's pg_hba.conf, or add sslmode=require"},
    Hint{"timeout expired", "check the host and any firewall on the path, or raise database.connect_timeout"},
    Hint{"did not answer in time",
         "check that the server behind the pooler is running, or raise database.connect_timeout"},
    Hint{"Connection refused", "check that PostgreSQL is running there, and the host and port in database.dsn"},
    Hint{
        "No such file or directory",
        "check that PostgreSQL is running on this machine, and host (the socket's directory) and port in database.dsn"},
    Hint{"too many clients", "raise max_connections of the server, or lower database.pool_size of the nodes"},
    Hint{"remaining connection slots", "raise max_connections of the server, or lower database.pool_size of the nodes"},
    Hint{"too many connections", "raise the connection limit of the role or the database"},
    Hint{"read-only", "no host in database.dsn accepts writes: check that the primary is running"},
    Hint{"hot standby", "no host in database.dsn accepts writes: check that the primary is running"},
    Hint{"starting up", "wait until the server has started, then retry"},
    Hint{"shutting down", "the server is shutting down; retry when it is running again"},
    Hint{"certificate", "check sslmode and sslrootcert in database.dsn"},
    Hint{"SSL", "check sslmode in database.dsn"},
};

std::string sql_identifier(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out += '"';
}

std::string fix_for(std::string_view reason) {
  const auto contains = [&](std::string_view sign) { return reason.find(sign) != std::string_view::npos; };
  if (contains("does not exist")) {
    if (contains("database \"")) return "create the database (createdb), or correct its name in database.dsn";
    if (contains("role \"")) return "create the role (createuser), or correct the user in database.dsn";
  }
  for (const auto& hint : kHints) {
    if (contains(hint.sign)) return std::string(hint.fix);
  }
  return "check database.dsn";
}

bool pending(const DatabaseFacts& facts) {
  return facts.migrations && facts.migrations->code == "migrations_pending";
}

// The message without the advice after ';': a finding carries its advice in `fix`.
std::string pending_text(const DatabaseFacts& facts) {
  const auto& message = facts.migrations->message;
  return message.substr(0, message.find(';'));
}

bool has_missing_rights(const DatabaseFacts& facts) {
  return std::ranges::any_of(facts.tables, [](const TableRights& table) { return !table.missing.empty(); });
}

void add_server_failures(const DatabaseFacts& facts, Findings& out) {
  if (facts.version_num < kOldestVersion) {
    out.push_back(failed(kCheck, fmt::format("PostgreSQL {} is too old", facts.version), "run PostgreSQL 14 or newer"));
  }
  if (facts.standby) {
    out.push_back(failed(kCheck, "this server is a standby, which does not accept writes",
                         "list the primary in database.dsn too and add target_session_attrs=read-write"));
  } else if (facts.read_only) {
    out.push_back(failed(kCheck, "sessions are read-only",
                         "turn default_transaction_read_only off, and check that the server's disk is not full"));
  }
}

void add_schema_failures(const DatabaseFacts& facts, Findings& out) {
  const auto role = sql_identifier(facts.role);
  if (!facts.schema) {
    out.push_back(failed(kCheck, fmt::format("role {} can use no schema of its search_path", role),
                         fmt::format("GRANT USAGE, CREATE ON SCHEMA public TO {}, or set its search_path", role)));
  } else if (pending(facts) && !facts.may_create) {
    const auto schema = sql_identifier(*facts.schema);
    out.push_back(failed(
        kCheck, fmt::format("{}, and role {} may not create tables in schema {}", pending_text(facts), role, schema),
        fmt::format("GRANT CREATE ON SCHEMA {} TO {}, or migrate as its owner", schema, role)));
  }
  for (const auto& [table, missing] : facts.tables) {
    if (missing.empty()) continue;
    const auto rights = fmt::format("{}", fmt::join(missing, ", "));
    out.push_back(failed(kCheck, fmt::format("role {} may not {} on table {}", role, rights, table),
                         fmt::format("GRANT {} ON {} TO {}", rights, table, role)));
  }
  if (!facts.economy.usable) {
    out.push_back(failed(
        kCheck, fmt::format("role {} may not use all of schema economy", role),
        fmt::format("as the owner of the schema: SELECT economy._grant_rights(); GRANT fencepost_economy_node TO {}",
                    role)));
  }
}

// A migration history that does not match this build. Missing rights to read it are reported by the rights check.
void add_history_failure(const DatabaseFacts& facts, Findings& out) {
  if (!facts.migrations || pending(facts)) return;
  const auto& error = *facts.migrations;
  if (error.code == "migration_edited") {
    out.push_back(failed(kCheck, error.message, "install the build of Fencepost that applied this migration"));
  } else if (error.code == "database_newer") {
    out.push_back(failed(kCheck, error.message, "upgrade this installation of Fencepost"));
  } else if (error.code == "migration_missing") {
    out.push_back(failed(kCheck, error.message, "check that database.dsn is not the database of another installation"));
  } else if (!has_missing_rights(facts)) {
    out.push_back(failed(kCheck, fmt::format("the schema cannot be checked: {}", one_line(error.message)),
                         "check that Fencepost, not another program, created the table schema_migration"));
  }
}

std::string clock_text(std::chrono::microseconds off) {
  const auto distance = std::chrono::abs(off);
  if (distance < kClockTolerance) {
    return fmt::format("{} ms", std::chrono::round<std::chrono::milliseconds>(distance).count());
  }
  return fmt::format("{:.1f} s", std::chrono::duration<double>(distance).count());
}

void add_warnings(const DatabaseFacts& facts, std::size_t needed, Findings& out) {
  if (pending(facts) && facts.may_create) {
    out.push_back(warned(kCheck, pending_text(facts), "run 'fencepost migrate' ('serve' migrates too)"));
  }
  if (std::chrono::abs(facts.clock_ahead) > kClockTolerance + facts.clock_uncertainty) {
    out.push_back(warned(kCheck,
                         fmt::format("the database's clock is {} {} this machine's", clock_text(facts.clock_ahead),
                                     facts.clock_ahead > 0us ? "ahead of" : "behind"),
                         "run a time service (NTP) on both machines; until then log times and key expiry disagree"));
  }
  if (facts.connection_limit >= 0 && needed > static_cast<std::size_t>(facts.connection_limit)) {
    out.push_back(warned(
        kCheck, fmt::format("one node opens up to {} connections, {} are allowed", needed, facts.connection_limit),
        "raise max_connections, or lower database.pool_size or runtime.threads"));
  }
  if (facts.notification_queue > kFullQueue) {
    out.push_back(warned(kCheck, fmt::format("the notification queue is {:.0f} % full", facts.notification_queue * 100),
                         "end the listening session that has a long transaction open (see pg_stat_activity)"));
  }
  for (const auto& writer : facts.economy.writers) {
    const bool everyone = writer.empty();
    const auto role = everyone ? "PUBLIC" : sql_identifier(writer);
    auto fix = fmt::format(
        "REVOKE ALL ON ALL TABLES IN SCHEMA economy FROM {0}; REVOKE ALL ON ALL FUNCTIONS IN SCHEMA economy FROM {0}",
        role);
    if (!everyone) fix += "; GRANT fencepost_economy_user TO " + role;  // PUBLIC cannot be a member
    out.push_back(warned(kCheck,
                         everyone ? "every role (PUBLIC) may change balances in schema economy by hand"
                                  : fmt::format("role {} may change balances in schema economy by hand", role),
                         fix));
  }
  if (!facts.fsync || !facts.synchronous_commit) {
    out.push_back(warned(
        kCheck,
        fmt::format("{} is off: a crash can lose committed changes", facts.fsync ? "synchronous_commit" : "fsync"),
        "turn it on before value moves through this database"));
  }
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The next word of the SQL in lower case, skipping `--` comments; empty at the end.
std::string next_word(std::string_view& sql) {
  while (!sql.empty() && !is_word(sql.front())) {
    sql.remove_prefix(sql.starts_with("--") ? std::min(sql.find('\n'), sql.size()) : 1);
  }
  std::string word;
  for (; !sql.empty() && is_word(sql.front()); sql.remove_prefix(1)) word += lower(sql.front());
  return word;
}

}  // namespace

Findings assess_database(const DatabaseFacts& facts, std::size_t needed) {
  Findings out;
  add_server_failures(facts, out);
  add_schema_failures(facts, out);
  add_history_failure(facts, out);
  if (out.empty()) {
    out.push_back(passed(
        kCheck,
        fmt::format("PostgreSQL {}, primary, {}, clock {} off", facts.version,
                    pending(facts) ? "schema not current" : fmt::format("schema current ({})", facts.newest_migration),
                    clock_text(facts.clock_ahead))));
  }
  add_warnings(facts, needed, out);
  return out;
}

std::size_t connections_needed(const Config& config, std::size_t cores) {
  const auto loops = config.runtime.threads > 0 ? config.runtime.threads : std::max<std::size_t>(1, cores);
  constexpr std::size_t kListening = 2;  // the listener, and briefly a second session that proves notifications arrive
  constexpr std::size_t kRenewing = 2;   // leases are renewed on sessions of their own
  return loops * (config.database.shared_connections + config.database.pool_size) + kListening + kRenewing;
}

Finding assess_unreachable(std::string_view reason) {
  return failed(kCheck, one_line(reason), fix_for(reason));
}

Finding assess_listen(ListenMode configured, pg::Listener::Mode mode) {
  constexpr auto kListen = "listen";
  if (configured == ListenMode::kPollOnly) {
    return passed(kListen, "not used: database.listen is poll_only, so work is found by polling");
  }
  switch (mode) {
    case pg::Listener::Mode::kListening:
      return passed(kListen, "notifications arrive");
    case pg::Listener::Mode::kPolling:
      return failed(kListen, "notifications do not arrive: the database may be behind a pooler in transaction mode",
                    "point database.dsn directly at PostgreSQL, or set database.listen: poll_only");
    case pg::Listener::Mode::kConnecting:
      return failed(
          kListen, "the listening session did not connect in time",
          "listening needs two more connections: check max_connections and the limits of the role and the database");
  }
  std::unreachable();
}

Finding assess_event_log(const outbox::EventPartitionReport& report) {
  constexpr auto kEvents = "events";
  constexpr auto kAddMonths = "run 'fencepost migrate' as the owner of the table event; nodes that own it do so hourly";
  if (!report.has_current_month) {
    return failed(kEvents, "the table event has no partition for this month: every step is refused", kAddMonths);
  }
  if (report.months_ahead < outbox::kMonthsAhead) {
    return warned(kEvents,
                  fmt::format("the table event has {} of {} months ahead", report.months_ahead, outbox::kMonthsAhead),
                  kAddMonths);
  }
  if (report.expired > 0) {
    return warned(
        kEvents, fmt::format("{} months are older than events.retention", report.expired),
        "look for a long transaction in pg_stat_activity, and that a node runs as the owner of the table event");
  }
  const auto since = to_rfc3339(report.since.value_or(TimePoint{})).substr(0, 7);
  return passed(kEvents,
                fmt::format("the log is complete since {}, and has {} months ahead", since, report.months_ahead));
}

Finding assess_horizon(const std::optional<outbox::HorizonHolder>& holder) {
  constexpr auto kDelivery = "delivery";
  if (!holder || holder->age < outbox::HorizonWatch::kAlarmAfter) {
    return passed(kDelivery, "no transaction holds up the delivery of events");
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(holder->age).count();
  return warned(kDelivery, fmt::format("events wait for {}, open for {} s", one_line(holder->who), seconds),
                "end that transaction; idle_in_transaction_session_timeout ends forgotten ones by itself");
}

std::vector<std::string> tables_created_by(std::string_view sql) {
  std::vector<std::string> tables;
  for (auto word = next_word(sql); !word.empty(); word = next_word(sql)) {
    if (word != "create") continue;
    auto kind = next_word(sql);
    if (kind == "unlogged") kind = next_word(sql);
    if (kind != "table") continue;
    auto name = next_word(sql);
    if (name == "if") {
      next_word(sql);  // not
      next_word(sql);  // exists
      name = next_word(sql);
    }
    if (!name.empty()) tables.push_back(std::move(name));
  }
  return tables;
}

}  // namespace fencepost::doctor
