#include "doctor/consumers.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "node/database_session.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;

constexpr auto kConsumerCheck = "consumers";
constexpr std::chrono::seconds kFarBehind = 5min;
constexpr std::size_t kMaxNamed = 5;

// A position in the database may be up to a renewal behind what the node has skipped.
constexpr pg::Statement kConsumers{"doctor_consumers", R"(
  SELECT c.consumer, c.active, c.claimed_until > clock_timestamp() AS claimed, coalesce(c.last_error, '') AS last_error,
         extract(epoch FROM clock_timestamp() - c.failing_since)::bigint AS failing_s,
         coalesce(extract(epoch FROM clock_timestamp() - (SELECT e.at
                                                             FROM event AS e
                                                            WHERE e.seq > c.position
                                                              AND e.type IS NOT NULL
                                                            ORDER BY e.seq
                                                            LIMIT 1)), 0)::bigint AS behind_s
    FROM event_consumer AS c
   ORDER BY c.consumer
   LIMIT 1000)"};

awaitable<std::vector<ConsumerFacts>> ask_consumers(pg::Pool& pool) {
  const auto rows = co_await pool.query(kConsumers);
  std::vector<ConsumerFacts> out;
  for (const auto row : rows) {
    ConsumerFacts facts{.consumer = row.get<std::string>("consumer"),
                        .active = row.get<bool>("active"),
                        .claimed = row.get<bool>("claimed"),
                        .behind = std::chrono::seconds(row.get<std::int64_t>("behind_s")),
                        .failing_for = std::nullopt,
                        .last_error = row.get<std::string>("last_error")};
    if (const auto seconds = row.get<std::optional<std::int64_t>>("failing_s"))
      facts.failing_for = std::chrono::seconds(*seconds);
    out.push_back(std::move(facts));
  }
  co_return out;
}

// "a, b and 3 more"
std::string named(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamed); ++i) out += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMaxNamed) out += fmt::format(" and {} more", names.size() - kMaxNamed);
  return out;
}

}  // namespace

Finding assess_consumers(const std::vector<ConsumerFacts>& consumers) {
  std::vector<std::string> unserved, late, failing;
  std::size_t paused = 0;
  for (const auto& facts : consumers) {
    if (!facts.active) {
      ++paused;
    } else if (!facts.claimed) {
      unserved.push_back(facts.consumer);
    } else if (facts.failing_for) {
      failing.push_back(
          fmt::format("{} (for {} s: {})", facts.consumer, facts.failing_for->count(), one_line(facts.last_error)));
    } else if (facts.behind > kFarBehind) {
      late.push_back(fmt::format("{} (by {} s)", facts.consumer, facts.behind.count()));
    }
  }
  const auto count = fmt::format("{} consumers, {} paused or disabled", consumers.size(), paused);
  if (!unserved.empty()) {
    return failed(kConsumerCheck, fmt::format("{}; no node serves {}", count, named(unserved)),
                  "start a node, or look for event_consumers in the nodes' logs");
  }
  if (!late.empty()) {
    return failed(kConsumerCheck, fmt::format("{}; behind: {}", count, named(late)),
                  "the receiver is too slow, or a transaction that stays open holds back the log");
  }
  if (!failing.empty()) {
    return warned(kConsumerCheck, fmt::format("{}; failing: {}", count, named(failing)),
                  "check the receiver: fencepost webhook deliveries <id> --failed");
  }
  return passed(kConsumerCheck, count);
}

Findings check_consumers(const Config& config) {
  try {
    return {assess_consumers(with_database(config, ask_consumers))};
  } catch (const Exception& e) {
    return {warned(kConsumerCheck, "not checked: " + one_line(e.error().message), "")};
  }
}

}  // namespace fencepost::doctor
