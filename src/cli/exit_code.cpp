#include "cli/exit_code.hpp"

#include <cstdio>

#include <fmt/format.h>

namespace fencepost::cli {
namespace {

int exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
    case ErrorKind::kTooLarge:
      return kExitUsage;
    case ErrorKind::kNotFound:
      return kExitNotFound;
    case ErrorKind::kRateLimited:
    case ErrorKind::kUnavailable:
    case ErrorKind::kTimeout:
      return kExitUnavailable;
    case ErrorKind::kUnauthenticated:
    case ErrorKind::kForbidden:
    case ErrorKind::kConflict:
    case ErrorKind::kUnprocessable:
    case ErrorKind::kInternal:
      return kExitFailed;
  }
  return kExitFailed;
}

}  // namespace

int report(const Error& error) {
  fmt::print(stderr, "fencepost: {}\n", error.message);
  for (const auto& [key, value] : error.context) fmt::print(stderr, "  {}: {}\n", key, value);
  return exit_code_of(error.kind);
}

}  // namespace fencepost::cli
