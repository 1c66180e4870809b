#include "doctor/transactions.hpp"

#include <algorithm>
#include <ranges>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "node/database_session.hpp"
#include "pg/error.hpp"
#include "pg/migrations.hpp"

#include "cluster/node_registry.hpp"

namespace fencepost::doctor {
namespace {

constexpr auto kTransactionCheck = "transactions";
constexpr auto kSignerCheck = "signers";
constexpr std::size_t kUnledSigners = 10'000;
constexpr std::size_t kUnledShown = 10;
constexpr std::size_t kMostSigners = 100;
constexpr std::size_t kSignersNamed = 5;
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

struct UnledWords {
  std::string_view why;
  std::string_view advice;
};

// Of a reason of tx::unled_work.
UnledWords words_of(std::string_view reason) {
  if (reason == tx::kNoKey) {
    return {"no live node has the key", "start a node that has the key; what was sent is finished without it"};
  }
  if (reason == tx::kNoLeader) {
    return {"no node has taken the lease for over a minute",
            "look for the worker lease_adoption in the nodes' logs; restart the nodes that have the key if it does not "
            "run"};
  }
  return {"no live node has the chain configured", "add the chain to a node until they have ended"};
}

// Throws the error of pg::check_migrations when the tables are not those of this version.
awaitable<TransactionFacts> ask_transactions(pg::Pool& pool, std::chrono::milliseconds silence) {
  const auto current = co_await pg::check_migrations(pool, pg::embedded_migrations());
  if (!current) throw Exception(current.error());
  TransactionFacts facts;
  const auto read_work = [&]() -> awaitable<> { facts.work = co_await tx::check_work(pool); };
  const auto read_records = [&]() -> awaitable<> { facts.records = co_await tx::check_records(pool); };
  facts.waiting_signers = co_await tx::waiting_signers(pool, kMostSigners);
  const auto read_unled = [&]() -> awaitable<> { facts.unled = co_await tx::unled_work(pool, silence, kUnledSigners); };
  facts.all_work = co_await in_time(read_work) && co_await in_time(read_unled);
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

Findings assess_unled(const std::vector<tx::UnledSigner>& unled) {
  Findings findings;
  std::int64_t others = 0;
  for (std::size_t i = 0; i < unled.size(); ++i) {
    const auto& one = unled[i];
    if (i >= kUnledShown) {
      others += one.transactions;
      continue;
    }
    const auto& [why, advice] = words_of(one.reason);
    findings.push_back(failed(kSignerCheck,
                              fmt::format("chain {}, signer {}: {} open, and {} ({})", one.key.chain_id, one.key.signer,
                                          grouped(one.transactions), why, one.reason),
                              std::string(advice)));
  }
  if (unled.size() > kUnledShown) {
    findings.push_back(
        failed(kSignerCheck,
               fmt::format("{} more signers with {} open that no live node can finish",
                           grouped(static_cast<std::int64_t>(unled.size() - kUnledShown)), grouped(others)),
               "metric fencepost_tx_unled counts them by chain and reason"));
  }
  return findings;
}

Finding assess_signers(const std::vector<tx::WaitingSigner>& waiting) {
  if (waiting.empty()) return passed(kSignerCheck, "none waits for an operator");
  std::vector<std::string> parts;
  for (const auto& one : waiting | std::views::take(kSignersNamed)) {
    auto part =
        fmt::format("{} on chain {}: {}", one.key.signer, one.key.chain_id, tx::kReconcileReasons.name(one.reason));
    if (one.gap_nonce) part += fmt::format(" at nonce {}", *one.gap_nonce);
    parts.push_back(std::move(part));
  }
  const auto more = waiting.size() == kMostSigners ? " or more" : "";
  return failed(
      kSignerCheck,
      fmt::format("{}{} get no new nonces until an operator acts: {}", waiting.size(), more, fmt::join(parts, "; ")),
      fmt::format("{}: docs/operations.md has the steps", tx::kReconcileReasons.meaning(waiting.front().reason)));
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
    const auto silence = cluster::longest_silence(config.lease.renew_interval);
    const auto facts = run_blocking(
        run_with_pool(connector, metrics, [silence](pg::Pool& pool) { return ask_transactions(pool, silence); }));
    Findings findings{assess_transactions(facts)};
    for (auto& finding : assess_unled(facts.unled)) findings.push_back(std::move(finding));
    if (!facts.waiting_signers.empty()) findings.push_back(assess_signers(facts.waiting_signers));
    return findings;
  } catch (const Exception& e) {
    return {warned(kTransactionCheck, "not checked: " + one_line(e.error().message), "")};
  }
}

}  // namespace fencepost::doctor
