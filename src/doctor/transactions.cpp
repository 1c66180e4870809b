#include "doctor/transactions.hpp"

#include <algorithm>
#include <ranges>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "node/database_session.hpp"
#include "pg/error.hpp"
#include "pg/migrations.hpp"

namespace fencepost::doctor {
namespace {

constexpr auto kTransactionCheck = "transactions";
constexpr auto kTryLater = "run it again when the database is less busy; nodes are not affected";

// 1204 → "1,204"
std::string grouped(std::int64_t number) {
  auto digits = std::to_string(number);
  for (auto place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > 0; place -= 3) {
    digits.insert(static_cast<std::size_t>(place), 1, ',');
  }
  return digits;
}

// "open and ended: 2 (<id>, <id>); …", with examples as long as `left` allows.
std::string faults_text(const std::vector<tx::Fault>& faults, std::size_t left) {
  std::vector<std::string> parts;
  for (const auto& fault : faults) {
    const auto shown = std::min(left, fault.examples.size());
    left -= shown;
    auto part = fmt::format("{}: {}", fault.what, grouped(fault.count));
    if (shown > 0) part += fmt::format(" ({})", fmt::join(fault.examples | std::views::take(shown), ", "));
    parts.push_back(std::move(part));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// Runs `read`, which may take too long. Returns whether it was finished.
template <class Read>
awaitable<bool> in_time(Read read) {
  try {
    co_await read();
    co_return true;
  } catch (const pg::QueryError& error) {
    if (!error.is_timeout()) throw;
  }
  co_return false;
}

// Throws the error of pg::check_migrations when the tables are not those of this version.
awaitable<TransactionFacts> ask_transactions(pg::Pool& pool) {
  const auto current = co_await pg::check_migrations(pool, pg::embedded_migrations());
  if (!current) throw Exception(current.error());
  TransactionFacts facts;
  const auto read_work = [&]() -> awaitable<> { facts.work = co_await tx::check_work(pool); };
  const auto read_records = [&]() -> awaitable<> { facts.records = co_await tx::check_records(pool); };
  facts.all_work = co_await in_time(read_work);
  facts.all_records = co_await in_time(read_records);
  co_return facts;
}

}  // namespace

Finding assess_transactions(const TransactionFacts& facts) {
  auto faults = facts.work.faults;
  faults.insert(faults.end(), facts.records.begin(), facts.records.end());
  const auto standing = facts.all_work
                            ? fmt::format("{} open, {} waiting", grouped(facts.work.open), grouped(facts.work.waiting))
                            : std::string("the open ones were not checked: reading them took too long");
  const auto skipped = facts.all_records ? "" : "; the ended ones were not checked: reading them took too long";
  if (!faults.empty()) {
    return failed(kTransactionCheck,
                  fmt::format("{}; their tables contradict each other: {}{}", standing,
                              faults_text(faults, tx::kFaultExamples), skipped),
                  "this is a bug in Fencepost, or the tables were changed by hand: make a backup, change nothing, and "
                  "report this line; these transactions may not finish by themselves");
  }
  if (!facts.all_work || !facts.all_records) return warned(kTransactionCheck, standing + skipped, kTryLater);
  return passed(kTransactionCheck, standing);
}

Findings check_transactions(const Config& config, std::chrono::milliseconds limit) {
  // The session's own limit, because a limit in a batch does not cover the preparation of its statements, which waits
  // while a migration has a table locked.
  auto options = session_options(config);
  options.application_name = "fencepost doctor";
  options.statement_timeout = limit;
  try {
    Metrics metrics;
    pg::Connector connector(options);
    const auto facts = run_blocking(run_with_pool(connector, metrics, ask_transactions));
    return {assess_transactions(facts)};
  } catch (const Exception& e) {
    return {warned(kTransactionCheck, "not checked: " + one_line(e.error().message), "")};
  }
}

}  // namespace fencepost::doctor
