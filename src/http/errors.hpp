// Factories for the kinds of errors that only HTTP answers use; the others are in base/error.hpp.
#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"

namespace fencepost::http {

// The caller is authenticated but not allowed to do this: 403.
inline Error forbidden(std::string code, std::string message) {
  return {ErrorKind::kForbidden, std::move(code), std::move(message), {}, {}, {}};
}

// The caller's key lacks a scope: 403.
inline Error insufficient_scope(const std::string& scope) {
  return forbidden("insufficient_scope", "the caller does not have the scope " + scope).with("scope", scope);
}

// The request is well-formed but cannot be carried out: 422.
inline Error unprocessable(std::string code, std::string message) {
  return {ErrorKind::kUnprocessable, std::move(code), std::move(message), {}, {}, {}};
}

// Too many requests of this kind: 429. Say when to come again with `after`.
inline Error rate_limited(std::string code, std::string message) {
  return {ErrorKind::kRateLimited, std::move(code), std::move(message), {}, {}, {}};
}

}  // namespace fencepost::http
