// What `fencepost doctor` has to say: one finding per check, and how findings are shown. No I/O here.
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
  std::string fix;     // how to mend it; empty when there is nothing to mend

  friend bool operator==(const Finding&, const Finding&) = default;
};
using Findings = std::vector<Finding>;

Finding passed(std::string check, std::string detail);
Finding warned(std::string check, std::string detail, std::string fix);
Finding failed(std::string check, std::string detail, std::string fix);

// A warning is no failure.
bool any_failed(std::span<const Finding> findings);

// One line without a newline at its end, the check's name in a column of `check_width`:
//   FAIL  email    smtp://mail:25: connection refused → is the mail server running?
std::string render_line(const Finding& finding, std::size_t check_width);
// [{"check": …, "status": "ok" | "warn" | "fail", "detail": …, "fix": … | null}, …], on one line.
std::string render_json(std::span<const Finding> findings);

// Text of a server or a library as part of a line: no control characters, valid UTF-8, not endless.
std::string one_line(std::string_view text);

// `file` is where the configuration was read from; empty: there is none. A configuration that loads but names no
// database fails too: a node cannot run without.
Findings assess_config(const Result<Config>& config, const std::string& file);

}  // namespace fencepost::doctor
