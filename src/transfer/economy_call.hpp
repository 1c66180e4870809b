// Calls the functions of the schema `economy` and reads their answers.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/object.hpp>

#include "base/error.hpp"
#include "pg/error.hpp"
#include "pg/pool.hpp"

namespace fencepost::transfer {

// How long a call waits for the locks of other sessions.
inline constexpr std::chrono::milliseconds kLockPatience{2'000};

// Returns the rows of the batch's last statement. Runs on a borrowed connection, and retries if PostgreSQL rolled the
// batch back because of a deadlock: then nothing was done.
awaitable<pg::ResultSet> run_batch(pg::Pool& pool, pg::Batch batch);

// Runs on a borrowed connection: a large set or a wait for a lock takes long, and short queries of other callers must
// not queue behind it.
template <class... Values>
awaitable<pg::ResultSet> run_alone(pg::Pool& pool, const pg::Statement& statement, Values... values) {
  pg::Batch batch;
  batch.add(statement, values...).lock_timeout(kLockPatience);
  co_return co_await run_batch(pool, std::move(batch));
}

// For a set. The statement's last parameter says whether to wait for locks. After `patience` the set runs without the
// items whose accounts another session has locked, so that only these items have to wait.
template <class... Values>
awaitable<pg::ResultSet> run_set(pg::Pool& pool, const pg::Statement& statement, std::chrono::milliseconds patience,
                                 Values... values) {
  try {
    pg::Batch batch;
    batch.add(statement, values..., true).lock_timeout(patience);
    co_return co_await run_batch(pool, std::move(batch));
  } catch (const pg::QueryError& error) {
    if (!error.is_lock_timeout()) throw;
  }
  co_return co_await run_alone(pool, statement, std::move(values)..., false);
}

// An outcome as an enumerator: `words` are the SQL function's words in the order of the enumeration.
template <class Outcome, std::size_t N>
Outcome outcome_named(std::string_view word, const std::array<std::string_view, N>& words) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) throw Exception(internal("bad_outcome", "unknown outcome: " + std::string(word)));
  return static_cast<Outcome>(found - words.begin());
}

// The column `outcome`.
template <class Outcome, std::size_t N>
Outcome outcome_of(const pg::Row& row, const std::array<std::string_view, N>& words) {
  return outcome_named<Outcome>(row.get<std::string_view>("outcome"), words);
}

}  // namespace fencepost::transfer
