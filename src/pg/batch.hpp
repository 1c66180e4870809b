// Statements that are sent together and committed or rolled back together.
//
// A Batch is one implicit transaction between two protocol syncs: one round trip and no BEGIN. An error in any
// statement rolls back all of them and leaves the session clean for the next caller.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "pg/params.hpp"

namespace fencepost::pg {

// A named query. Declare it as a constant next to the function that runs it: connections hold a pointer to it, and
// prepare it under its name when it is first used. The name labels metrics and errors. Requires: the name is unique in
// the program; a second text under the same name throws.
struct Statement {
  std::string_view name;
  std::string_view sql;
};

class Batch {
 public:
  struct Entry {
    const Statement* statement;
    Params params;
  };

  template <class... Values>
  Batch& add(const Statement& statement, const Values&... values) {
    entries_.push_back({&statement, Params::of(values...)});
    return *this;
  }
  Batch& add_params(const Statement& statement, Params params) {
    entries_.push_back({&statement, std::move(params)});
    return *this;
  }

  // For this transaction only; it replaces the session's timeout. Zero means no limit.
  Batch& statement_timeout(std::chrono::milliseconds limit) {
    statement_timeout_ = limit;
    return *this;
  }
  Batch& lock_timeout(std::chrono::milliseconds limit) {
    lock_timeout_ = limit;
    return *this;
  }

  // A statement that runs first, before the limits above are set; its result is not returned. Used for BEGIN.
  Batch& prologue(const Statement& statement) {
    prologue_ = &statement;
    return *this;
  }

  const Statement* prologue() const { return prologue_; }
  const std::vector<Entry>& entries() const { return entries_; }
  std::optional<std::chrono::milliseconds> statement_timeout() const { return statement_timeout_; }
  std::optional<std::chrono::milliseconds> lock_timeout() const { return lock_timeout_; }
  bool empty() const { return entries_.empty(); }
  // The name of this batch in errors and metrics: the name of its first statement.
  std::string_view name() const { return entries_.empty() ? "empty" : entries_.front().statement->name; }

 private:
  const Statement* prologue_ = nullptr;
  std::vector<Entry> entries_;
  std::optional<std::chrono::milliseconds> statement_timeout_;
  std::optional<std::chrono::milliseconds> lock_timeout_;
};

// Whether a connection loss during the batch leaves the outcome unknown.
enum class Access {
  kRead,   // no: ConnectionLost, and the pool retries once on another connection
  kWrite,  // yes: CommitUnknown
};

struct RunOptions {
  Access access = Access::kWrite;
  // How long the caller waits for the answer. The server may still complete the statements afterwards.
  std::optional<std::chrono::milliseconds> timeout;
};

}  // namespace fencepost::pg
