// How a command ends: the process's exit code, and what it prints when it fails.
#pragma once

#include "base/error.hpp"

namespace fencepost::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;         // or refused
inline constexpr int kExitUsage = 2;          // the command line, the configuration or the request is wrong
inline constexpr int kExitFailedForGood = 3;  // transaction FAILED_FINAL, transfer rejected, audit errors, flows differ
inline constexpr int kExitNotYet = 4;         // the timeout passed first
inline constexpr int kExitNotFound = 5;       // the requested object does not exist
inline constexpr int kExitUnavailable = 6;    // unreachable or too busy: a retry may succeed

// For `fencepost --help`.
inline constexpr auto kExitCodes =
    "Exit codes:\n"
    "  0  done\n"
    "  1  failed, or refused\n"
    "  2  the command line, the configuration or the request is wrong\n"
    "  3  the transaction failed for good, the transfer was rejected, the audit found money missing, or flows differ\n"
    "  4  the timeout passed first\n"
    "  5  not found\n"
    "  6  unreachable or too busy: retry later\n";

// Prints the error with its context on stderr and returns its exit code.
int report(const Error& error);

}  // namespace fencepost::cli
