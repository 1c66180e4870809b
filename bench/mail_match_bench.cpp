// Measures how long it takes to find who gets a mail about a change, among 1,000,000 subscriptions of 100,000 people.
//
//   mail_match_bench     BENCH_SMOKE: with little data
//
// initiator   the subscriptions of the people whose wallet or Safe queued the flow
// contract    the first page of the subscriptions to all flows of the contract: about 300
//
// One question after the other through a pool. A look-up of a person by primary key, the floor, takes turns with each.
// The bar is a p99 of 2 ms. The exit code is 3 if it is missed.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "notify/store/recipient_store.hpp"
#include "pg/embedded_cluster.hpp"
#include "pg/migrations.hpp"
#include "runtime/runtime.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace fencepost;
using namespace std::chrono_literals;
using notify::FlowChange;
using SteadyClock = std::chrono::steady_clock;

constexpr double kBarMs = 2.0;
constexpr std::int64_t kSubscriptionsOfPerson = 10;

struct Size {
  std::int64_t people;
  std::int64_t contracts;
  int questions;
};
constexpr Size kFull{.people = 100'000, .contracts = 2'000, .questions = 20'000};
constexpr Size kSmoke{.people = 200, .contracts = 20, .questions = 200};

// Every second person has two addresses, and the subscriptions are spread over them. Six in ten subscriptions are to
// all flows of the contract, one in ten has filters.
constexpr pg::Statement kLoad[] = {
    {"bench_people",
     "INSERT INTO users (wallet_address) SELECT '0x' || lpad(to_hex(n), 40, '0') FROM generate_series(1, $1) AS n"},
    {"bench_emails",
     "INSERT INTO emails (email) SELECT 'p' || n || '@example.org' FROM generate_series(1, $1 + $1 / 2) AS n"},
    {"bench_user_emails", R"(
       INSERT INTO user_emails (user_id, email_id, is_verified)
       SELECT CASE WHEN n <= $1 THEN n ELSE (n - $1) * 2 END, n, true
         FROM generate_series(1, $1 + $1 / 2) AS n)"},
    {"bench_subscriptions", R"(
       INSERT INTO user_email_subscriptions (user_email_id, timelock_standard, chain_id, contract_address, notify_on,
                                             notify_filters, scope, since_block, since_timestamp)
       SELECT CASE WHEN n % 2 = 0 AND k % 2 = 1 THEN $1 + n / 2 ELSE n END, 'compound', 1,
              '0x' || lpad(to_hex((n * 7 + k * ($2 / $3)) % $2), 40, '0'), '["waiting", "ready", "executed"]',
              CASE WHEN (n + k) % 10 = 0 THEN '{"functions": ["0xa9059cbb"]}'::jsonb END,
              CASE WHEN (n / 10 + k) % 10 < 6 THEN 'all' ELSE 'initiator' END, 100, '2026-01-01'
         FROM generate_series(1, $1) AS n, generate_series(0, $3 - 1) AS k)"},
};
constexpr pg::Statement kVacuum[] = {{"bench_vacuum_users", "VACUUM ANALYZE users"},
                                     {"bench_vacuum_emails", "VACUUM ANALYZE emails"},
                                     {"bench_vacuum_user_emails", "VACUUM ANALYZE user_emails"},
                                     {"bench_vacuum_subscriptions", "VACUUM ANALYZE user_email_subscriptions"}};
constexpr pg::Statement kPerson{"bench_person", "SELECT wallet_address FROM users WHERE id = $1"};

awaitable<> load(pg::Pool& pool, Size size) {
  for (const auto& statement : kLoad) {
    pg::Batch batch;
    auto params = pg::Params::of(size.people);
    if (&statement == &kLoad[3]) params.add(size.contracts).add(kSubscriptionsOfPerson);
    batch.add_params(statement, std::move(params)).statement_timeout(0ms);
    co_await pool.run(std::move(batch));
  }
  for (const auto& statement : kVacuum) co_await pool.execute(statement);
}

// A flow that a person has queued, at a contract to which the person has a subscription.
FlowChange change_of(std::int64_t person, std::int64_t subscription, Size size) {
  const auto contract = (person * 7 + subscription * (size.contracts / kSubscriptionsOfPerson)) % size.contracts;
  return {.ref = {.standard = "compound",
                  .chain_id = 1,
                  .contract = fmt::format("0x{:040x}", contract),
                  .flow_id = fmt::format("0x{:064x}", person),
                  .generation = 1},
          .from = {},
          .to = "waiting",
          .tx_hash = {},
          .block = 200,
          .changed_at = TimePoint{},
          .initiator = fmt::format("0x{:040x}", person),
          .via = fmt::format("0x{:040x}", person % size.people + 1)};
}

class Times {
 public:
  template <class T>
  awaitable<T> measure(awaitable<T> question) {
    const auto begin = SteadyClock::now();
    auto answer = co_await std::move(question);
    ms_.push_back(std::chrono::duration<double, std::milli>(SteadyClock::now() - begin).count());
    co_return answer;
  }
  double at(double share) {
    const auto place = ms_.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(ms_.size() - 1));
    std::ranges::nth_element(ms_, place);
    return *place;
  }

 private:
  std::vector<double> ms_;
};

bool report(std::string_view name, Times& ours, Times& floor, double found) {
  const bool reached = ours.at(0.99) <= kBarMs;
  fmt::print("{:<30} p50 {:6.2f} ms   p99 {:6.2f} ms (bar {:.2f}) {}\n", name, ours.at(0.5), ours.at(0.99), kBarMs,
             reached ? "reached" : "MISSED");
  fmt::print("{:<30} p50 {:6.2f} ms   p99 {:6.2f} ms, ratio {:.1f} of the p50; {:.1f} subscriptions found on average\n",
             "  floor: by primary key", floor.at(0.5), floor.at(0.99), ours.at(0.5) / floor.at(0.5), found);
  std::fflush(stdout);
  return reached;
}

// `ask` returns how many subscriptions it found for a change.
template <class Ask>
awaitable<bool> bench(std::string_view name, pg::Pool& pool, Size size, int questions, Ask ask) {
  std::minstd_rand random(7);
  Times ours;
  Times floor;
  std::size_t found = 0;
  const auto warm_up = questions / 10;
  for (int i = -warm_up; i < questions; ++i) {
    const auto person = static_cast<std::int64_t>(random()) % size.people + 1;
    const auto change = change_of(person, static_cast<std::int64_t>(random()) % kSubscriptionsOfPerson, size);
    if (i < 0) {
      co_await ask(change);
      co_await pool.query(kPerson, person);
      continue;
    }
    found += co_await ours.measure(ask(change));
    co_await floor.measure(pool.query(kPerson, person));
  }
  const auto average = static_cast<double>(found) / questions;
  if (average < 1) throw Exception(internal("mail_match_bench", "questions found no subscription"));
  co_return report(name, ours, floor, average);
}

awaitable<bool> run_all(pg::Connector& connector, Size size) {
  Metrics metrics;
  pg::Pool pool(co_await this_executor(), connector, {}, metrics);
  pool.start();
  co_await load(pool, size);
  const auto by_initiator = [&](const FlowChange& change) -> awaitable<std::size_t> {
    const auto rows =
        co_await pool.query(notify::sql::kByInitiator, change.ref.standard, change.ref.chain_id, change.ref.contract,
                            change.to, change.block, change.changed_at, change.initiator, change.via);
    co_return static_cast<std::size_t>(rows.size());
  };
  const auto by_contract = [&](const FlowChange& change) -> awaitable<std::size_t> {
    co_return (co_await notify::more_candidates(pool, change, 0)).candidates.size();
  };
  const bool initiator = co_await bench("mail-match-initiator", pool, size, size.questions, by_initiator);
  const bool contract = co_await bench("mail-match-contract", pool, size, size.questions / 10, by_contract);
  co_await pool.stop(5s);
  co_return initiator&& contract;
}

int run() {
  const char* smoke = std::getenv("BENCH_SMOKE");
  const auto size = smoke != nullptr && *smoke != '\0' ? kSmoke : kFull;
  const test::TempDir dir("bench");
  const auto cluster = pg::EmbeddedCluster::start({.data_dir = dir.path() / "postgres"});
  if (!cluster) throw Exception(cluster.error());
  pg::Connector connector({.dsn = Secret((*cluster)->dsn()), .application_name = "mail_match_bench"});
  const auto migrated = run_blocking(pg::migrate(connector, pg::embedded_migrations()));
  if (!migrated) throw Exception(migrated.error());
  return run_blocking(run_all(connector, size)) ? 0 : 3;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& e) {
    fmt::print(stderr, "mail_match_bench: {}\n", e.what());
    return 1;
  }
}
