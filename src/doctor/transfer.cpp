#include "doctor/transfer.hpp"

#include <fmt/format.h>

#include "node/database_session.hpp"
#include "pg/listener.hpp"
#include "transfer/telemetry_listener.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;

constexpr auto kTransferCheck = "transfers";
constexpr std::chrono::milliseconds kUnfinished = 60s;

std::string in_words(std::chrono::milliseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  return seconds < 120 ? fmt::format("{} s", seconds) : fmt::format("{} min", seconds / 60);
}

constexpr pg::Statement kNodes{"doctor_transfer_nodes", R"(
  SELECT (SELECT count(*) FROM cluster_node WHERE heartbeat_at > clock_timestamp() - interval '15 s') AS alive,
         (SELECT count(*)
            FROM pg_stat_activity
           WHERE datname = current_database()
             AND starts_with(application_name, $1)
             AND strpos(application_name, $2) > 0) AS listening)"};

awaitable<TransferFacts> ask(pg::Pool& pool) {
  TransferFacts facts;
  const auto nodes = co_await pool.query(kNodes, pg::Listener::kSessionName, transfer::kWorkChannel);
  facts.nodes = static_cast<std::size_t>(nodes.one().get<std::int64_t>("alive"));
  facts.listeners = static_cast<std::size_t>(nodes.one().get<std::int64_t>("listening"));
  facts.pool = co_await transfer::PendingTransferGateway(pool).pool_state();
  co_return facts;
}

}  // namespace

Finding assess_transfers(const TransferFacts& facts, const Config& config) {
  const auto& pool = facts.pool;
  const auto late = std::max<std::chrono::milliseconds>(2 * config.transfer.sweep_interval, 10s);
  const auto standing = fmt::format("{} waiting (the oldest for {}, {} with a retry due), {} approved", pool.waiting,
                                    in_words(pool.oldest_waiting.value_or(0ms)), pool.retries_due, pool.approved);
  if (facts.nodes == 0 && pool.waiting + pool.approved > 0) {
    return failed(kTransferCheck, standing + "; no node is running", "start a node: fencepost serve");
  }
  if (pool.oldest_due && *pool.oldest_due > late) {
    return failed(
        kTransferCheck, fmt::format("{}; the oldest has been due for {}", standing, in_words(*pool.oldest_due)),
        fmt::format("{} node(s) run, but none processes it: look for transfer_coordinator in their logs, and for "
                    "locks in the database",
                    facts.nodes));
  }
  if (pool.oldest_approved && *pool.oldest_approved > std::max(late, kUnfinished)) {
    return failed(
        kTransferCheck,
        fmt::format("{}; transfer {} has been approved for {} and is not completed", standing,
                    pool.oldest_approved_id.value().to_string(), in_words(*pool.oldest_approved)),
        "look for its id in the nodes' logs: PostgreSQL refuses it, or another session holds a lock on an account");
  }
  if (config.database.listen == ListenMode::kEnabled && facts.listeners < facts.nodes) {
    return warned(kTransferCheck,
                  fmt::format("{}; of {} node(s) {} listen on {}: the others find due transfers late, by polling",
                              standing, facts.nodes, facts.listeners, transfer::kWorkChannel),
                  "look for `listener` in their logs; a pooler in transaction mode drops notifications");
  }
  const auto mode = config.transfer.event_pool_enabled ? "pool" : "sync";
  return passed(kTransferCheck, fmt::format("{}; {} node(s), {} listening on {}; without a mode a transfer is {}",
                                            standing, facts.nodes, facts.listeners, transfer::kWorkChannel, mode));
}

Findings check_transfers(const Config& config) {
  try {
    return {assess_transfers(with_database(config, ask), config)};
  } catch (const Exception& e) {
    return {warned(kTransferCheck, "not checked: " + one_line(e.error().message), "")};
  }
}

}  // namespace fencepost::doctor
