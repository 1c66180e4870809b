// Statements that go to the server together and stand or fall together.
//
// A Batch is one implicit transaction between two protocol syncs: one round trip, no BEGIN, and an error in any
// statement undoes them all and leaves the session clean for the next caller.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "pg/params.hpp"

namespace fencepost::pg {

// A named query. Declare it as a constant beside the function that runs it: connections keep a pointer to it and
// prepare it under its name the first time. The name labels metrics and errors, and is unique in the program: another
// text under a name that is taken throws.
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

  // For this transaction only, in place of the session's. Zero means no limit.
  Batch& statement_timeout(std::chrono::milliseconds limit) {
    statement_timeout_ = limit;
    return *this;
  }
  Batch& lock_timeout(std::chrono::milliseconds limit) {
    lock_timeout_ = limit;
    return *this;
  }

  // A statement before everything else, the limits above included; its result is not given back. BEGIN, in practice.
  Batch& prologue(const Statement& statement) {
    prologue_ = &statement;
    return *this;
  }

  const Statement* prologue() const { return prologue_; }
  const std::vector<Entry>& entries() const { return entries_; }
  std::optional<std::chrono::milliseconds> statement_timeout() const { return statement_timeout_; }
  std::optional<std::chrono::milliseconds> lock_timeout() const { return lock_timeout_; }
  bool empty() const { return entries_.empty(); }
  // What errors and metrics call this batch: its first statement.
  std::string_view name() const { return entries_.empty() ? "empty" : entries_.front().statement->name; }

 private:
  const Statement* prologue_ = nullptr;
  std::vector<Entry> entries_;
  std::optional<std::chrono::milliseconds> statement_timeout_;
  std::optional<std::chrono::milliseconds> lock_timeout_;
};

// Whether losing the connection half way leaves a question open.
enum class Access {
  kRead,   // it does not: ConnectionLost, and the pool tries once more elsewhere
  kWrite,  // it does: CommitUnknown
};

struct RunOptions {
  Access access = Access::kWrite;
  // How long the caller waits for the answer. The statements may still run to their end afterwards.
  std::optional<std::chrono::milliseconds> timeout;
};

}  // namespace fencepost::pg
