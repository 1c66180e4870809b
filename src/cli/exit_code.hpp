// How a command ends: the process's exit code, and what it prints on stderr.
//
// With --json each line of stderr is one JSON document: {"notice": …}, {"warning": …}, or the error.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;         // or refused
inline constexpr int kExitUsage = 2;          // the command line, the configuration or the request is wrong
inline constexpr int kExitFailedForGood = 3;  // transaction failed or reverted, transfer rejected, audit, flows differ
inline constexpr int kExitNotYet = 4;         // the timeout passed first
inline constexpr int kExitNotFound = 5;       // the requested object does not exist
inline constexpr int kExitUnavailable = 6;    // unreachable or too busy: a retry may succeed
inline constexpr int kExitInterrupted = 130;  // by Ctrl-C; as shells report the signal

// For `fencepost help exit-codes`.
inline constexpr auto kExitCodes =
    "Exit codes:\n"
    "  0    done\n"
    "  1    failed, or refused\n"
    "  2    the command line, the configuration or the request is wrong\n"
    "  3    the transaction failed for good or reverted, the transfer was rejected, the audit found money missing, or\n"
    "       flows differ\n"
    "  4    the timeout passed first\n"
    "  5    not found\n"
    "  6    unreachable or too busy: retry later\n"
    "  130  ended by Ctrl-C\n";

// From now on stderr is for scripts. One process runs one command, so this is set once, before the command runs.
void use_json_on_stderr();
bool is_json_on_stderr();

// {"code": …, "message": …, "exitCode": …, "details": {…}}, on one line.
std::string error_json(const Error& error, int exit_code);

// Prints the error with its context on stderr and returns its exit code.
int report(const Error& error);

// Prints a line on stderr: what the caller should know although nothing failed.
void print_notice(std::string_view text);
// Prints "fencepost: warning: …" on stderr.
void print_warning(std::string_view text);

}  // namespace fencepost::cli
