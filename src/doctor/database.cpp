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
  std::string_view sign;  // what libpq's text contains
  std::string_view fix;
};

// The first sign that is found counts.
constexpr std::array kHints{
    Hint{"password", "check user and password in database.dsn; special characters in a URI are written as %XX"},
    Hint{"could not translate host name", "check the host in database.dsn, and that this machine can look it up"},
    Hint{"Peer authentication", "connect over TCP with a password, or run as the system user of that name"},
    Hint{"no pg_hba.conf entry",
         "allow this host, user and database in the server's pg_hba.conf, or add sslmode=require"},
    Hint{"timeout expired", "is a firewall in between, or the host wrong? else raise database.connect_timeout"},
    Hint{"did not answer in time", "is a pooler in between whose server is down? else raise database.connect_timeout"},
    Hint{"Connection refused", "is PostgreSQL running there? check host and port in database.dsn"},
    Hint{"No such file or directory",
         "is PostgreSQL running here? check host (the socket's folder) and port in database.dsn"},
    Hint{"too many clients", "raise max_connections of the server, or lower database.pool_size of the nodes"},
    Hint{"remaining connection slots", "raise max_connections of the server, or lower database.pool_size of the nodes"},
    Hint{"too many connections", "raise the connection limit of the role or the database"},
    Hint{"read-only", "no host of database.dsn takes writes: is the primary down?"},
    Hint{"hot standby", "no host of database.dsn takes writes: is the primary down?"},
    Hint{"starting up", "wait until the server has started, then try again"},
    Hint{"shutting down", "the server stops just now; try again when it is back"},
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

// Without the advice behind it, which a finding gives in its own place.
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
    out.push_back(failed(kCheck, "this server is a standby, which cannot be written",
                         "list the primary in database.dsn too and add target_session_attrs=read-write"));
  } else if (facts.read_only) {
    out.push_back(
        failed(kCheck, "sessions are read-only", "turn default_transaction_read_only off; is the server's disk full?"));
  }
}

void add_schema_failures(const DatabaseFacts& facts, Findings& out) {
  const auto role = sql_identifier(facts.role);
  if (!facts.schema) {
    out.push_back(failed(kCheck, fmt::format("role {} has no schema to work in", role),
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
}

// A history that does not fit. One that could not be read for want of rights is told of by the rights.
void add_history_failure(const DatabaseFacts& facts, Findings& out) {
  if (!facts.migrations || pending(facts)) return;
  const auto& error = *facts.migrations;
  if (error.code == "migration_edited") {
    out.push_back(failed(kCheck, error.message, "install the build of Fencepost that applied it"));
  } else if (error.code == "database_newer") {
    out.push_back(failed(kCheck, error.message, "upgrade this installation of Fencepost"));
  } else if (error.code == "migration_missing") {
    out.push_back(failed(kCheck, error.message, "is database.dsn another installation's database?"));
  } else if (!has_missing_rights(facts)) {
    out.push_back(failed(kCheck, fmt::format("the schema cannot be checked: {}", one_line(error.message)),
                         "is table schema_migration Fencepost's own?"));
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
    out.push_back(warned(kCheck, pending_text(facts), "fencepost migrate ('serve' does it too)"));
  }
  if (std::chrono::abs(facts.clock_ahead) > kClockTolerance + facts.clock_uncertainty) {
    out.push_back(warned(kCheck,
                         fmt::format("its clock is {} {} this machine's", clock_text(facts.clock_ahead),
                                     facts.clock_ahead > 0us ? "ahead of" : "behind"),
                         "run a time service on both; until then log times and key expiry disagree"));
  }
  if (facts.connection_limit >= 0 && needed > static_cast<std::size_t>(facts.connection_limit)) {
    out.push_back(warned(
        kCheck, fmt::format("one node opens up to {} connections, {} are allowed", needed, facts.connection_limit),
        "raise max_connections, or lower database.pool_size or runtime.threads"));
  }
  if (facts.notification_queue > kFullQueue) {
    out.push_back(warned(kCheck, fmt::format("the notification queue is {:.0f} % full", facts.notification_queue * 100),
                         "end the session that listens in a long transaction (pg_stat_activity)"));
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

// The next word of SQL in lower case, a comment to the end of its line left out; empty at the end.
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
  constexpr std::size_t kListening = 2;  // the listener and, for a moment, its proof
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
      return failed(kListen, "notifications do not arrive: is the database behind a pooler in transaction mode?",
                    "point database.dsn at PostgreSQL itself, or set database.listen: poll_only");
    case pg::Listener::Mode::kConnecting:
      return failed(kListen, "no listening session came up in time",
                    "two more connections are needed than the check of the database used: are there any left?");
  }
  std::unreachable();
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
