// How many blocks the next request for logs of a back-fill may have.
//
// Nodes refuse ranges that are too large, each with a limit of its own, which may be in blocks or in logs. So the span
// grows while requests succeed with few logs, shrinks when one is refused, and stays below a refused span for a while.
// Pure; one thread only. Use one for each endpoint.
//
//   LogSpan span;
//   last = std::min(first + span.blocks() - 1, head);
//   … then succeeded(last - first + 1, logs.size()) or refused(last - first + 1, suggested_span(error))
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/error.hpp"

namespace fencepost::evm {

struct LogSpanOptions {
  std::int64_t initial = 2'000;
  std::int64_t max = 100'000;
  std::size_t few_logs = 2'000;     // more in an answer: the span does not grow
  int successes_to_grow = 2;        // in a row
  int requests_below_refused = 50;  // how long a refused span is remembered
};

class LogSpan {
 public:
  // Values below 1 count as 1, and an initial span above the maximum as the maximum.
  explicit LogSpan(LogSpanOptions options = {});

  // At least 1, at most the maximum, and below every span that was refused lately.
  std::int64_t blocks() const { return blocks_; }

  // A request of `asked` blocks was answered. One that was smaller than blocks(), near the head, proves nothing and
  // only counts as a request.
  void succeeded(std::int64_t asked, std::size_t logs);

  // A request of `asked` blocks was refused as too large. Takes the suggested span if it is smaller than the refused
  // one, else half of that. Errors: kUnavailable `logs_refused` when a single block is refused; retrying is useless.
  Result<void> refused(std::int64_t asked, std::optional<std::int64_t> suggested = {});

 private:
  void count_request();

  LogSpanOptions options_;
  std::int64_t blocks_;
  std::optional<std::int64_t> refused_;  // the smallest span that was refused lately
  int remember_refused_ = 0;             // requests until it is forgotten
  int successes_ = 0;
  bool followed_suggestion_ = false;  // a node that refuses its own suggestion is not believed the next time
};

}  // namespace fencepost::evm
