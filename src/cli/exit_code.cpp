#include "cli/exit_code.hpp"

#include <cstdio>

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

bool json_on_stderr = false;

void print_document(const json::object& document) {
  fmt::print(stderr, "{}\n", json::serialize(document));
}

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

void use_json_on_stderr() {
  json_on_stderr = true;
}

bool is_json_on_stderr() {
  return json_on_stderr;
}

std::string error_json(const Error& error, int exit_code) {
  json::object details;
  for (const auto& [key, value] : error.context) {
    if (key != "code") details[key] = value;
  }
  return json::serialize(json::object{
      {"code", error.code}, {"message", error.message}, {"exitCode", exit_code}, {"details", std::move(details)}});
}

int report(const Error& error) {
  const auto exit_code = exit_code_of(error.kind);
  if (json_on_stderr) {
    fmt::print(stderr, "{}\n", error_json(error, exit_code));
    return exit_code;
  }
  fmt::print(stderr, "fencepost: {}\n", error.message);
  for (const auto& [key, value] : error.context) fmt::print(stderr, "  {}: {}\n", key, value);
  return exit_code;
}

void print_notice(std::string_view text) {
  if (json_on_stderr) {
    print_document({{"notice", text}});
  } else {
    fmt::print(stderr, "{}\n", text);
  }
}

void print_warning(std::string_view text) {
  if (json_on_stderr) {
    print_document({{"warning", text}});
  } else {
    fmt::print(stderr, "fencepost: warning: {}\n", text);
  }
}

}  // namespace fencepost::cli
