#include "pg/migrations.hpp"

#include <charconv>

#include <fmt/format.h>

#include "base/digest.hpp"
#include "base/embedded.hpp"
#include "base/random.hpp"
#include "pg/error.hpp"
#include "runtime/log.hpp"

namespace fencepost::pg {

std::span<const EmbeddedFile> migration_files();  // generated from db/migrations by the build

namespace {

// "fencepos" in ASCII. Any constant works, as long as every node uses the same one.
constexpr std::int64_t kMigrationLock = 0x66656e6365706f73;

constexpr Statement kLock{"migrations_lock", "SELECT pg_advisory_lock($1)"};
constexpr Statement kTableExists{"migrations_table_exists", "SELECT to_regclass('schema_migration') IS NOT NULL"};
constexpr Statement kApplied{"migrations_applied", R"(
  SELECT version, name, checksum
    FROM schema_migration
   ORDER BY version)"};

constexpr auto kCreateTable = R"(
  CREATE TABLE IF NOT EXISTS schema_migration (
    version    int         PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
  ))";

// How many of `migrations` are applied already, or why the applied ones do not match them.
Result<std::size_t> compare(const ResultSet& applied, std::span<const Migration> migrations) {
  std::size_t known = 0;
  for (const auto row : applied) {
    const auto version = row.get<int>("version");
    const auto name = row.get<std::string>("name");
    if (known == migrations.size()) {
      return fail(conflict("database_newer", fmt::format("the database has migration {}, which this version of "
                                                         "Fencepost does not know; run a newer version",
                                                         name)));
    }
    const auto& ours = migrations[known];
    if (ours.version != version) {
      return fail(
          conflict("migration_missing",
                   fmt::format("the database has migration {} where this version of Fencepost has {}; run the version "
                               "that migrated this database",
                               name, ours.name)));
    }
    if (ours.checksum != row.get<std::string_view>("checksum")) {
      return fail(conflict("migration_edited", fmt::format("{} was changed after it was applied; restore it and add "
                                                           "a new migration instead",
                                                           ours.name)));
    }
    ++known;
  }
  return known;
}

awaitable<ResultSet> run_one(Connection& connection, const Batch& batch) {
  auto results = co_await connection.run(batch, {.access = Access::kRead});
  co_return std::move(results.front());
}

// In one transaction. Whether it did; false: another session kept a lock, or there was a deadlock, and nothing was
// done.
awaitable<bool> apply(Connection& connection, std::span<const Migration> migrations) {
  bool busy = false;
  try {
    co_await connection.exec_script("BEGIN");
    for (const auto& migration : migrations) {
      co_await connection.exec_script(
          fmt::format("{}\n;INSERT INTO schema_migration (version, name, checksum) VALUES ({}, '{}', '{}')",
                      migration.sql, migration.version, migration.name, migration.checksum));
    }
    co_await connection.exec_script("COMMIT");
  } catch (const QueryError& error) {
    if (!error.is_lock_timeout() && !error.is_deadlock()) throw;
    busy = true;
  }
  if (busy) co_await connection.exec_script("ROLLBACK");
  co_return !busy;
}

// While a lock is waited for, all later users of the table queue behind it. So each wait is short, shorter than the
// time after which PostgreSQL looks for deadlocks, and between two tries the nodes get on with their work.
awaitable<bool> apply_patiently(Connection& connection, std::span<const Migration> migrations,
                                std::chrono::milliseconds patience) {
  co_await connection.exec_script("SET lock_timeout = '500ms'");
  const auto deadline = std::chrono::steady_clock::now() + patience;
  SystemRandom random;
  asio::steady_timer pause(co_await this_executor());
  while (!co_await apply(connection, migrations)) {
    if (std::chrono::steady_clock::now() > deadline) co_return false;
    log::warn("the tables are in use; the migrations are tried again");
    pause.expires_after(std::chrono::milliseconds(100 + static_cast<int>(400 * random.uniform())));
    co_await pause.async_wait(asio::use_awaitable);
  }
  co_return true;
}

awaitable<Result<std::vector<std::string>>> apply_missing(Connection& connection, std::span<const Migration> migrations,
                                                          std::chrono::milliseconds patience) {
  // The session holds the lock, so the lock is released when the session ends, also after an error.
  Batch lock;
  lock.add(kLock, kMigrationLock).statement_timeout(std::chrono::milliseconds(0));
  co_await connection.run(lock, {.access = Access::kRead});  // kRead: losing the lock changes no data
  co_await connection.exec_script("SET statement_timeout = 0");
  // Check first: CREATE … IF NOT EXISTS requires the right to create even when the table exists, and a node whose
  // operator runs migrations under another role need not have that right.
  Batch look;
  look.add(kTableExists);
  const auto exists = co_await run_one(connection, look);
  if (!exists.one().get<bool>(0)) co_await connection.exec_script(kCreateTable);

  Batch read;
  read.add(kApplied);
  const auto applied = co_await run_one(connection, read);
  const auto known = compare(applied, migrations);
  if (!known) co_return fail(known.error());
  const auto missing = migrations.subspan(*known);
  std::vector<std::string> done;
  if (missing.empty()) co_return done;
  if (!co_await apply_patiently(connection, missing, patience)) {
    co_return fail(unavailable("database_busy",
                               "other sessions keep the tables that the migrations change; end long transactions (see "
                               "pg_stat_activity) or stop the other nodes, and run 'fencepost migrate' again"));
  }
  for (const auto& migration : missing) {
    log::info("migration applied", {{"migration", migration.name}});
    done.push_back(migration.name);
  }
  co_return done;
}

}  // namespace

Migration::Migration(int number, std::string what, std::string_view text)
    : version(number), name(std::move(what)), sql(text), checksum(sha256_hex(text)) {}

const std::vector<Migration>& embedded_migrations() {
  static const auto all = [] {
    std::vector<Migration> migrations;
    for (const auto& file : migration_files()) {
      int version = 0;
      const auto [end, ec] = std::from_chars(file.name.data(), file.name.data() + file.name.size(), version);
      if (ec != std::errc{} || end != file.name.data() + 4 || !file.name.ends_with(".sql")) {
        throw Exception(
            internal("bad_migration", fmt::format("bad file name '{}': expected NNNN_what.sql", file.name)));
      }
      migrations.emplace_back(version, std::string(file.name.substr(0, file.name.size() - 4)), file.content);
    }
    std::ranges::sort(migrations, {}, &Migration::version);
    const auto twin = std::ranges::adjacent_find(migrations, {}, &Migration::version);
    if (twin != migrations.end()) {
      throw Exception(internal("bad_migration", fmt::format("two migrations have number {}", twin->version)));
    }
    return migrations;
  }();
  return all;
}

awaitable<Result<std::vector<std::string>>> migrate(Connector& connector, std::span<const Migration> migrations,
                                                    std::chrono::milliseconds patience) {
  const auto executor = co_await this_executor();
  auto session = co_await connector.connect(executor);
  const OwnedConnection connection(std::move(session), {});
  co_return co_await apply_missing(*connection, migrations, patience);
}

awaitable<Result<void>> check_migrations(Pool& pool, std::span<const Migration> migrations) {
  const auto exists = co_await pool.query(kTableExists);
  std::size_t known = 0;
  if (exists.one().get<bool>(0)) {
    const auto applied = co_await pool.query(kApplied);
    const auto compared = compare(applied, migrations);
    if (!compared) co_return fail(compared.error());
    known = *compared;
  }
  if (known < migrations.size()) {
    co_return fail(unavailable("migrations_pending", fmt::format("{} of {} migrations are not applied; run "
                                                                 "'fencepost migrate'",
                                                                 migrations.size() - known, migrations.size())));
  }
  co_return Result<void>{};
}

}  // namespace fencepost::pg
