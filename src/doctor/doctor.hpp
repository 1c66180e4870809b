// The findings of `fencepost doctor`, one or more per check, and how they are shown. No I/O here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

#include "config/config.hpp"

namespace fencepost::doctor {

enum class Status { kOk, kWarn, kFail };

struct Finding {
  std::string check;  // "database", "chain dev"
  Status status = Status::kOk;
  std::string detail;  // what was found; never a secret
  std::string fix;     // how to fix it; empty if there is nothing to fix

  friend bool operator==(const Finding&, const Finding&) = default;
};
using Findings = std::vector<Finding>;

Finding passed(std::string check, std::string detail);
Finding warned(std::string check, std::string detail, std::string fix);
Finding failed(std::string check, std::string detail, std::string fix);

// True if a finding is a failure; warnings do not count.
bool any_failed(std::span<const Finding> findings);

// One line without a trailing newline, the check's name in a column of `check_width`:
//   FAIL  email    smtp://mail:25: connection refused → check that the mail server is running
std::string render_line(const Finding& finding, std::size_t check_width);
// Where the detail begins in such a line, for the lines of a text that is wrapped.
constexpr std::size_t detail_column(std::size_t check_width) {
  return 4 + 2 + check_width + 2;
}
// [{"check": …, "status": "ok" | "warn" | "fail", "detail": …, "fix": … | null}, …], on one line.
std::string render_json(std::span<const Finding> findings);

// Makes text from a server or a library safe to print in one line: no control characters, valid UTF-8, cut if long.
std::string one_line(std::string_view text);

// `file` is the configuration file; empty: none. A configuration without database.dsn fails too: a node needs a
// database.
Findings assess_config(const Result<Config>& config, const std::string& file);

}  // namespace fencepost::doctor
