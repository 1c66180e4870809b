// Three nodes, one PostgreSQL, clients that retry until they get an answer, and injected faults. The seed decides the
// requests, the faults and after how many answers each fault comes. After every round the books must balance.
//
// FENCEPOST_TEST_SEED and FENCEPOST_TEST_ROUNDS choose another run or a longer one.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr std::size_t kNodes = 3;
constexpr std::size_t kClients = 6;
constexpr std::size_t kActions = 40;  // of one client in one round
constexpr std::int64_t kMembers = 8;  // of a guild
constexpr std::int64_t kGuilds = 3;
constexpr std::int64_t kStrictGuild = 3;  // a cooldown of a second, and a limit that is fixed during a round
constexpr std::int64_t kLimitOfARound = 300;
constexpr std::int64_t kGovernment = 2;
constexpr std::int64_t kSometimesGovernment = 3;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

enum class Kind { kRequest, kCancel, kFail, kInsert };
struct Action {
  Kind kind = Kind::kRequest;
  std::string method;
  std::string path;
  json::object body;
  std::string key;     // the idempotency key of `insert`
  std::string insert;  // SQL, as a psql user would write it; expires around the time of approval
};

enum class Fault { kKillNode, kDeafen, kRestartDatabase, kCrashDatabase };
constexpr std::size_t kFaultKinds = 4;
struct PlannedFault {
  std::size_t after;  // this many answers
  Fault fault;
  std::size_t node;
};

// The actions and faults of one round, derived from the seed.
class Plan {
 public:
  Plan(std::uint64_t seed, std::size_t round) : random_(seed * 1000 + round) {
    for (std::size_t client = 0; client < kClients; ++client) {
      auto& mine = actions.emplace_back();
      for (std::size_t i = 0; i < kActions; ++i) mine.push_back(action(fmt::format("r{}-c{}-{}", round, client, i)));
    }
    const std::size_t all = kClients * kActions;
    // Every seed gets every kind of fault within two rounds.
    for (std::size_t i = 1; i <= 3; ++i) {
      faults.push_back({.after = all * i / 4,
                        .fault = static_cast<Fault>((seed + 3 * round + i) % kFaultKinds),
                        .node = below(kNodes)});
    }
  }

  std::vector<std::vector<Action>> actions;  // by client
  std::vector<PlannedFault> faults;

 private:
  std::uint64_t below(std::uint64_t limit) { return random_.next() % limit; }

  Action action(const std::string& key) {
    const auto guild = 1 + static_cast<std::int64_t>(below(kGuilds));
    const auto dice = below(100);
    const auto member = 1 + static_cast<std::int64_t>(below(kMembers));
    const auto account = fmt::format("/api/v1/guilds/{}/accounts/{}", guild, member);
    if (dice < 9) {
      return {.method = "POST",
              .path = account + (dice < 6 ? "/mint" : "/burn"),
              .body = {{"amount", std::to_string(1 + below(200))}, {"reason", "simulation"}, {"idempotencyKey", key}}};
    }
    if (dice < 10) {
      return {.method = "PUT",
              .path = fmt::format("/api/v1/guilds/{}/accounts/{}/kind", guild, kSometimesGovernment),
              .body = {{"kind", below(2) == 0 ? "government" : "member"}, {"reason", "simulation"}}};
    }
    if (dice < 12 && guild != kStrictGuild) {
      return {.method = "PATCH",
              .path = fmt::format("/api/v1/guilds/{}/settings", guild),
              .body = {{"cooldownSeconds", static_cast<std::int64_t>(below(3))},
                       {"dailyLimit", std::to_string(500 + below(5000))},
                       {"reason", "simulation"}}};
    }
    if (dice < 18) return {.kind = Kind::kCancel};
    if (dice < 20) return {.kind = Kind::kFail};
    // One hot payer, pairs that pay each other, and random members.
    const auto from = dice < 40 ? 1 : member;
    auto to = 1 + static_cast<std::int64_t>(below(kMembers - 1));
    if (to >= from) ++to;
    if (dice >= 90) {
      return {.kind = Kind::kInsert,
              .key = key,
              .insert = fmt::format("INSERT INTO economy.pending_transfers (guild_id, initiator_id, target_id, amount, "
                                    "idempotency_key, expires_at) VALUES ({}, {}, {}, {}, '{}', clock_timestamp() + "
                                    "interval '{} ms') ON CONFLICT DO NOTHING",
                                    guild, from, to, 50 + below(400), key, 50 + below(3000))};
    }
    json::object body{{"guildId", std::to_string(guild)},        {"initiatorId", std::to_string(from)},
                      {"targetId", std::to_string(to)},          {"amount", std::to_string(1 + below(60))},
                      {"mode", below(2) == 0 ? "pool" : "sync"}, {"idempotencyKey", key}};
    return {.method = "POST", .path = "/api/v1/transfers", .body = std::move(body)};
  }

  SeededRandom random_;
};

class TransferSimulation : public testing::Test {
 protected:
  TransferSimulation()
      : server_({{"synchronous_commit", "on"}}),
        cluster_({.nodes = kNodes, .anvil = {"--no-mining"}, .dsn = server_.dsn()}) {}

  void play(const Plan& plan) {
    answers_ = 0;
    std::vector<std::jthread> clients;
    clients.reserve(kClients);
    for (std::size_t client = 0; client < kClients; ++client) {
      clients.emplace_back([&, client] {
        std::string mine;
        for (const auto& action : plan.actions[client]) carry_out(action, client, mine);
      });
    }
    for (const auto& planned : plan.faults) {
      EXPECT_TRUE(eventually([&] { return answers_ >= planned.after; }, 120s));
      inflict(planned);
    }
  }

  // Repeats the action, each time at the next node, until there is a definite answer.
  void carry_out(const Action& action, std::size_t client, std::string& mine) {
    auto node = client;
    const bool answered = eventually(
        [&] {
          if (action.kind == Kind::kInsert) return insert_by_hand(action, mine);
          return request(action, node++ % kNodes, mine);
        },
        120s);
    EXPECT_TRUE(answered) << json::serialize(action.body) << action.insert;
    ++answers_;
  }

  // Returns whether there was a definite answer. `mine` is the client's newest transfer, which it may cancel.
  bool request(const Action& action, std::size_t node, std::string& mine) {
    const bool ends = action.kind != Kind::kRequest;  // cancels or fails its newest transfer
    if (ends && mine.empty()) return true;
    const auto path =
        ends ? fmt::format("/api/v1/transfers/{}/{}", mine, action.kind == Kind::kCancel ? "cancel" : "fail")
             : action.path;
    const auto body = action.kind == Kind::kFail ? json::object{{"reason", "simulation"}} : action.body;
    const auto answer =
        ask({ends ? "POST" : action.method, cluster_.node(node).url(path), cluster_.key(), json::serialize(body)});
    if (answer.status == 0 || answer.status == 503 || answer.status == 500) {
      ++lost_;
      EXPECT_NE(answer.status, 500U) << answer.body;
      return false;
    }
    if (answer.status < 200 || answer.status >= 300) {
      EXPECT_EQ(answer.status, ends ? 409U : 422U) << path << " " << answer.body;
    } else if (path == "/api/v1/transfers") {
      accept(mine = std::string(answer.json().at("transferId").as_string()));
    }
    return true;
  }

  bool insert_by_hand(const Action& action, std::string& mine) {
    try {
      cluster_.sql(action.insert);
      accept(mine = cluster_.sql("SELECT transfer_id FROM economy.pending_transfers WHERE idempotency_key = '" +
                                 action.key + "'"));
      return true;
    } catch (const Exception& e) {
      const auto& what = e.error().message;
      EXPECT_TRUE(what.contains("connect") || what.contains("database system")) << what;
      ++lost_;
      return false;
    }
  }

  void accept(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    accepted_.push_back(id);
  }

  void inflict(const PlannedFault& planned) {
    auto& node = cluster_.node(planned.node);
    switch (planned.fault) {
      case Fault::kKillNode:
        node.kill();
        node.start();
        break;
      case Fault::kDeafen:  // ends every listening session
        // There may be none for a moment after an earlier fault.
        EXPECT_TRUE(eventually([&] {
          return cluster_.sql(
                     "SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE application_name LIKE "
                     "'fencepost hears %'") == "t";
        }));
        break;
      case Fault::kCrashDatabase:
        server_->kill();
        restart_database();
        break;
      case Fault::kRestartDatabase:
        restart_database();
        break;
    }
  }

  void restart_database() {
    const auto restarted = server_->restart();
    ASSERT_TRUE(restarted) << restarted.error().to_string();
  }

  // Expects no overdue work, books that balance, and every accepted transfer exactly once.
  void expect_in_order() {
    EXPECT_TRUE(cluster_.sql_becomes(
        "SELECT count(*) FROM economy.transfer_work WHERE approved OR least(due_at, expires_at) < clock_timestamp() - "
        "interval '10 s'",
        "0"))
        << cluster_.describe();
    EXPECT_EQ(cluster_.sql("SELECT coalesce(string_agg(check_name || ': ' || example, '; '), '') FROM "
                           "economy.fn_audit() WHERE wrong > 0"),
              "");
    // No transfer was denied as expired before its expiry, and none was approved after it. One second allows for the
    // time of a commit.
    EXPECT_EQ(cluster_.sql("SELECT count(*) FROM economy.transfer_denials JOIN economy.pending_transfers USING "
                           "(transfer_id) WHERE transfer_denials.reason = 'transfer_checks_expired' AND denied_at < "
                           "expires_at"),
              "0");
    EXPECT_EQ(cluster_.sql("SELECT count(*) FROM event AS e JOIN economy.pending_transfers AS p ON e.subject = "
                           "'transfer/' || p.transfer_id WHERE e.type = 'TransferApproved' AND e.at > "
                           "p.expires_at + interval '1 s'"),
              "0");
    // No approval within the cooldown of the last one, and none beyond the day's limit.
    EXPECT_EQ(cluster_.sql("SELECT count(*) FROM test_approval WHERE at < before + interval '1 s'"), "0");
    EXPECT_EQ(cluster_.sql("SELECT count(*) FROM test_approval WHERE used > daily_limit"), "0");
    std::string ids;
    for (const auto& id : accepted_) ids += (ids.empty() ? "'" : "','") + id;
    if (ids.empty()) return;
    EXPECT_EQ(cluster_.sql(
                  fmt::format("SELECT count(*) FROM unnest(ARRAY[{}']::uuid[]) AS asked WHERE NOT EXISTS (SELECT FROM "
                              "economy.pending_transfers WHERE transfer_id = asked) AND NOT EXISTS (SELECT FROM "
                              "economy.transactions WHERE transfer_id = asked)",
                              ids)),
              "0");
    EXPECT_EQ(
        cluster_.sql("SELECT count(*) FROM (SELECT guild_id, initiator_id, idempotency_key FROM "
                     "economy.pending_transfers UNION ALL SELECT guild_id, debit_id, idempotency_key FROM "
                     "economy.transactions WHERE kind = 'transfer' AND idempotency_key IS NOT NULL) AS k GROUP BY "
                     "guild_id, initiator_id, idempotency_key HAVING count(*) > 1 LIMIT 1"),
        "");
  }

  // Notes each approval of the strict guild, with the settings of that time.
  void note_approvals() {
    cluster_.sql("CREATE TABLE test_approval (before timestamptz, at timestamptz, used bigint, daily_limit bigint)");
    cluster_.sql(
        "CREATE FUNCTION test_note_approval() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO public.test_approval SELECT OLD.last_transfer_at, NEW.last_transfer_at, NEW.day_used, "
        "s.daily_limit FROM economy.guild_settings AS s WHERE s.guild_id = NEW.guild_id; RETURN NULL; END $$");
    cluster_.sql(fmt::format(
        "CREATE TRIGGER test_note_approval AFTER UPDATE ON economy.accounts FOR EACH ROW WHEN (NEW.guild_id = {} AND "
        "OLD.last_transfer_at IS DISTINCT FROM NEW.last_transfer_at) EXECUTE FUNCTION test_note_approval()",
        kStrictGuild));
  }
  // The limit rises from round to round, so that there is always something to approve.
  void set_strict_limit(std::size_t round) {
    const json::object change{{"cooldownSeconds", 1},
                              {"dailyLimit", std::to_string(kLimitOfARound * static_cast<std::int64_t>(round + 1))},
                              {"reason", "simulation"}};
    EXPECT_TRUE(eventually([&] {
      return ask({"PATCH", cluster_.node(0).url(fmt::format("/api/v1/guilds/{}/settings", kStrictGuild)),
                  cluster_.key(), json::serialize(change)})
                 .status == 200;
    }));
  }

  TestCluster server_;
  TxCluster cluster_;
  std::atomic<std::size_t> answers_{0};
  std::atomic<std::size_t> lost_{0};
  std::mutex mutex_;
  std::vector<std::string> accepted_;
};

TEST_F(TransferSimulation, the_books_balance_after_every_fault) {
  const auto seed = from_environment("FENCEPOST_TEST_SEED", 1);
  const auto rounds = from_environment("FENCEPOST_TEST_ROUNDS", 60);
  note_approvals();
  for (std::int64_t guild = 1; guild <= kGuilds; ++guild) {
    for (std::int64_t member = 1; member <= kMembers; ++member) {
      ASSERT_EQ(cluster_
                    .post(0, fmt::format("/api/v1/guilds/{}/accounts/{}/mint", guild, member),
                          {{"amount", "300"}, {"reason", "beginning"}})
                    .status,
                201U);
    }
    ASSERT_EQ(ask({"PUT", cluster_.node(0).url(fmt::format("/api/v1/guilds/{}/accounts/{}/kind", guild, kGovernment)),
                   cluster_.key(), R"({"kind": "government", "reason": "beginning"})"})
                  .status,
              200U);
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", seed, round));
    set_strict_limit(round);
    play(Plan(seed, round));
    expect_in_order();
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted_.size(), rounds * kActions);
  EXPECT_NE(cluster_.sql("SELECT count(*) > 20 FROM test_approval"), "f") << "the limits were never tested";
  EXPECT_GT(lost_, 0U) << "no request failed: the faults tested nothing";
  for (const std::string reason : {"transfer_checks_expired", "transfer_cancelled", "transfer_failed"}) {
    EXPECT_NE(cluster_.sql("SELECT count(*) FROM economy.transfer_denials WHERE reason = '" + reason + "'"), "0")
        << reason;
  }
  EXPECT_NE(cluster_.sql("SELECT count(*) FROM economy.transactions WHERE kind = 'burn'"), "0");
  EXPECT_NE(cluster_.sql("SELECT count(*) FROM economy.transactions WHERE kind = 'transfer' AND debit_id = " +
                         std::to_string(kGovernment)),
            "0");
  EXPECT_NE(cluster_.sql("SELECT count(*) FROM economy.pending_transfers WHERE status = 'completed' AND expires_at < "
                         "created_at + interval '1 min'"),
            "0")
      << "no transfer with a short expiry completed in time";
}

}  // namespace
}  // namespace fencepost::test
