// Factories for kinds of errors that only answers to a request have; the others are in base/error.hpp.
#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"

namespace fencepost::http {

// We know who asks, and the answer is no: 403.
inline Error forbidden(std::string code, std::string message) {
  return {ErrorKind::kForbidden, std::move(code), std::move(message), {}, {}, {}};
}

// Well-formed, but it cannot be done: 422.
inline Error unprocessable(std::string code, std::string message) {
  return {ErrorKind::kUnprocessable, std::move(code), std::move(message), {}, {}, {}};
}

}  // namespace fencepost::http
