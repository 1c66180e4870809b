// How a command ends: the process's exit code, and what it prints when it fails.
#pragma once

#include "base/error.hpp"

namespace fencepost::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;         // or refused
inline constexpr int kExitUsage = 2;          // the command line, the configuration or the request is wrong
inline constexpr int kExitFailedForGood = 3;  // the transaction FAILED_FINAL, the transfer rejected, the audit wrong
inline constexpr int kExitNotYet = 4;         // the timeout passed first
inline constexpr int kExitNotFound = 5;       // there is no such thing
inline constexpr int kExitUnavailable = 6;    // cannot be reached, or too busy: the same may succeed later

// For `fencepost --help`.
inline constexpr auto kExitCodes =
    "Exit codes:\n"
    "  0  done\n"
    "  1  failed, or refused\n"
    "  2  the command line, the configuration or the request is wrong\n"
    "  3  the transaction failed for good, the transfer was rejected, or the audit found money missing\n"
    "  4  not there in time\n"
    "  5  there is no such thing\n"
    "  6  cannot be reached, or too busy: try again\n";

// Prints the error on stderr, with its context, and returns the exit code that stands for it.
int report(const Error& error);

}  // namespace fencepost::cli
