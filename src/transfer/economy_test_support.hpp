// A guild with members, for the tests of the economy's SQL. A test advances time by moving stored times into the past.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/random.hpp"
#include "base/uuid.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/postgres.hpp"

namespace fencepost::transfer {

using interleaving::Answer;
using interleaving::Session;

inline constexpr std::int64_t kGuild = 7;

// Collects the notifications of a channel, including all that were committed before `take`.
class Ear {
 public:
  Ear(const std::string& dsn, std::string channel)
      : channel_(std::move(channel)), connection_(PQconnectdb(dsn.c_str())) {
    run("LISTEN " + channel_);
  }

  // The payloads since the last call, in order.
  std::vector<std::string> take() {
    const auto mark = fmt::format("mark {}", ++marks_);
    run(fmt::format("NOTIFY {}, '{}'", channel_, mark));
    std::vector<std::string> payloads;
    for (;;) {
      while (auto* raw = PQnotifies(connection_.get())) {
        const std::unique_ptr<PGnotify, decltype([](PGnotify* n) { PQfreemem(n); })> notify(raw);
        if (notify->extra == mark) return payloads;
        payloads.emplace_back(notify->extra);
      }
      pollfd socket{PQsocket(connection_.get()), POLLIN, 0};
      if (::poll(&socket, 1, 20'000) != 1 || PQconsumeInput(connection_.get()) != 1) {
        throw Exception(internal("test_ear", "the listener heard nothing"));
      }
    }
  }
  std::vector<boost::json::object> take_json() {
    std::vector<boost::json::object> events;
    for (const auto& payload : take()) events.push_back(boost::json::parse(payload).as_object());
    return events;
  }

 private:
  void run(const std::string& sql) {
    const pg::ResultSet reply(PQexec(connection_.get(), sql.c_str()));
    if (reply.command().empty()) throw Exception(internal("test_ear", PQerrorMessage(connection_.get())));
  }

  std::string channel_;
  pg::PgConn connection_;
  int marks_ = 0;
};

// One item of a set.
struct Wish {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t amount = 0;
  std::optional<std::string> key = std::nullopt;
  std::optional<std::string> reason = std::nullopt;
  std::int64_t guild = kGuild;
};

class EconomyTest : public ::testing::Test {
 protected:
  using Texts = std::vector<std::string>;

  // No cooldown and no limit by default; tests of these set their own.
  void SetUp() override { settings(R"({"cooldown_seconds": 0, "daily_limit": null})"); }

  void change_settings(const std::string& changes, std::int64_t guild = kGuild) {
    admin.must("SELECT economy.fn_set_settings($1, $2::jsonb, 'test', 'tester')", pg::Params::of(guild, changes));
  }
  // Changes settings while no check is running, so that their reminder is not needed. The transactions of all databases
  // of the cluster decide when a reminder is followed, so tests that run at the same moment would change the outcome.
  void settings(const std::string& changes, std::int64_t guild = kGuild) {
    change_settings(changes, guild);
    admin.must("DELETE FROM economy.transfer_reminders");
  }
  std::string mint(std::int64_t member, std::int64_t amount, std::int64_t guild = kGuild) {
    return admin.value<std::string>("SELECT outcome FROM economy.fn_mint($1, $2, $3, 'test', 'tester')",
                                    pg::Params::of(guild, member, amount));
  }
  std::string burn(std::int64_t member, std::int64_t amount) {
    return admin.value<std::string>("SELECT outcome FROM economy.fn_burn($1, $2, $3, 'test', 'tester')",
                                    pg::Params::of(kGuild, member, amount));
  }
  void make_government(std::int64_t member) {
    admin.must("SELECT economy.fn_set_account_kind($1, $2, 'government', 'test', 'tester')",
               pg::Params::of(kGuild, member));
  }

  // Inserts a row as a psql session would.
  static constexpr std::string_view kInsert =
      "INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount) VALUES ($1, $2, $3, $4) "
      "RETURNING transfer_id";
  Uuid insert(std::int64_t from, std::int64_t to, std::int64_t amount) {
    return admin.value<Uuid>(kInsert, pg::Params::of(kGuild, from, to, amount));
  }

  static constexpr std::string_view kCreate =
      "SELECT * FROM economy.fn_create_pending_transfers($1, $2, $3, $4, $5, $6, $7, $8, $9)";
  static constexpr std::string_view kNow = "SELECT * FROM economy.fn_transfer_now($1, $2, $3, $4, $5, $6, $7, $8)";
  static constexpr std::string_view kProcess = "SELECT * FROM economy.fn_process_due(1000)";
  static constexpr std::string_view kExpire = "SELECT economy.fn_expire_transfers(1000)";
  static constexpr std::string_view kCancel = "SELECT * FROM economy.fn_cancel_transfer($1)";

  // The array parameters of both modes; `more` comes before the keys.
  template <class... More>
  static pg::Params params_of(const std::vector<Wish>& wishes, const More&... more) {
    std::vector<std::optional<Uuid>> ids(wishes.size());
    std::vector<std::optional<std::string>> reasons, metadata(wishes.size()), keys;
    std::vector<std::int64_t> guilds, from, to, amounts;
    for (const auto& wish : wishes) {
      guilds.push_back(wish.guild);
      from.push_back(wish.from);
      to.push_back(wish.to);
      amounts.push_back(wish.amount);
      reasons.push_back(wish.reason);
      keys.push_back(wish.key);
    }
    return pg::Params::of(ids, guilds, from, to, amounts, reasons, metadata, more..., keys);
  }
  static pg::Params now_params(const std::vector<Wish>& wishes) { return params_of(wishes); }
  static pg::Params create_params(const std::vector<Wish>& wishes, std::optional<std::int32_t> hours = std::nullopt) {
    return params_of(wishes, std::vector<std::optional<std::int32_t>>(wishes.size(), hours));
  }
  pg::ResultSet create(const std::vector<Wish>& wishes) { return admin.must(kCreate, create_params(wishes)); }
  pg::ResultSet transfer_now(const std::vector<Wish>& wishes) { return admin.must(kNow, now_params(wishes)); }

  static Texts column(const pg::ResultSet& rows, std::string_view name) {
    Texts out;
    for (const auto row : rows) out.push_back(row.get<std::optional<std::string>>(name).value_or("-"));
    return out;
  }

  // Calls until nothing is due; returns how many transfers were completed.
  std::int64_t process() {
    std::int64_t completed = 0;
    for (;;) {
      const auto rows = admin.must(kProcess);
      completed += rows.one().get<std::int64_t>("completed");
      if (!rows.one().get<bool>("more")) return completed;
    }
  }
  std::int64_t expire() { return admin.value<std::int64_t>(kExpire); }

  // "approved", "checking 3" (retries) or "rejected transfer_cancelled".
  std::string state(const Uuid& id) {
    return admin.value<std::string>(
        "SELECT status || CASE WHEN status = 'checking' THEN ' ' || retry_count ELSE coalesce(' ' || denied_reason, '')"
        "                 END FROM economy.fn_get_pending_transfer($1)",
        pg::Params::of(id));
  }
  std::string checks(const Uuid& id) {  // "101": balance, cooldown, daily_limit
    return admin.value<std::string>(
        "SELECT concat(checks -> 'balance', checks -> 'cooldown', checks -> 'daily_limit') "
        "FROM economy.pending_transfers WHERE transfer_id = $1",
        pg::Params::of(id));
  }
  // "balance/reserved", or "-" without an account.
  std::string account(std::int64_t member, std::int64_t guild = kGuild) {
    return admin.value<std::string>(
        "SELECT coalesce((SELECT balance || '/' || reserved FROM economy.accounts WHERE guild_id = $1 AND member_id = "
        "$2)"
        "                , '-')",
        pg::Params::of(guild, member));
  }

  // Moves every stored time that far into the past.
  void pass(const std::string& interval) {
    tamper(fmt::format(R"(
      UPDATE economy.transfer_work
         SET due_at = due_at - interval '{0}', next_attempt_at = next_attempt_at - interval '{0}',
             expires_at = expires_at - interval '{0}';
      UPDATE economy.pending_transfers
         SET expires_at = expires_at - interval '{0}' WHERE status IN ('pending', 'checking', 'approved');
      UPDATE economy.accounts SET last_transfer_at = last_transfer_at - interval '{0}')",
                       interval));
  }
  // Bypasses every trigger, as a superuser can.
  void tamper(const std::string& sql) { db.exec("SET session_replication_role = replica; " + sql); }

  // The findings of the audit; empty if there are none.
  std::string audit() {
    return admin.value<std::string>(
        "SELECT coalesce(string_agg(check_name || ': ' || wrong || ', e.g. ' || example, '; '), '') "
        "FROM economy.fn_audit() WHERE wrong <> 0");
  }
  Texts outbox(const Uuid& id) {
    return column(
        admin.must("SELECT type FROM event WHERE subject = 'transfer/' || $1::text ORDER BY seq", pg::Params::of(id)),
        "type");
  }

  test::TestDatabase db{test::Template::kMigrated};
  Session admin{db.dsn(), "admin"};
};

}  // namespace fencepost::transfer
