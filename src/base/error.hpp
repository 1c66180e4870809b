// How Fencepost reports failures.
//
// There are two ways, and a function uses one of them for each failure:
//   Result<T>   for an outcome that the caller decides on: not found, conflict, not the leader, would revert.
//   Exception   for a failure that only the edge can handle: a lost connection, a broken invariant. It is caught in
//               exactly two places, the request handler and the worker loop.
// Both carry an Error, so both become the same log line and the same problem document.
#pragma once

#include <chrono>
#include <exception>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fencepost {

// The kind of a failure, by what the caller can do about it. http/ maps each kind to one status code.
enum class ErrorKind {
  kInvalid,          // the request is malformed: a retry fails the same way  400
  kUnauthenticated,  // no valid credentials                                  401
  kForbidden,        // the caller is known but lacks the right               403
  kNotFound,         //                                                       404
  kConflict,         // the current state does not allow the request          409
  kTooLarge,         //                                                       413
  kUnprocessable,    // well-formed, but impossible to carry out              422
  kRateLimited,      // too many requests: retry later                        429
  kInternal,         // a bug, or a failure of the environment                500
  kUnavailable,      // retry later, or the outcome is unknown (see the code) 503
  kTimeout,          //                                                       504
};

struct Error {
  using Context = std::vector<std::pair<std::string, std::string>>;

  ErrorKind kind = ErrorKind::kInternal;
  std::string code;     // stable and machine-readable, e.g. "request_conflict"
  std::string message;  // one sentence for a person: what is wrong and, where known, what to do
  Context context;      // what the reader needs to find the row, the request or the peer
  std::optional<std::chrono::seconds> retry_after;
  std::string cause;  // for the log only: the text of the database, peer or OS, which may name hosts, users and files

  // Adds one entry to the context; calls chain: `return invalid("bad_nonce", "…").with("signer", s);`
  Error& with(std::string key, std::string value) & {
    context.emplace_back(std::move(key), std::move(value));
    return *this;
  }
  Error&& with(std::string key, std::string value) && {
    context.emplace_back(std::move(key), std::move(value));
    return std::move(*this);
  }
  Error&& because(std::string reason) && {
    cause = std::move(reason);
    return std::move(*this);
  }
  Error&& after(std::chrono::seconds delay) && {
    retry_after = delay;
    return std::move(*this);
  }

  // "message [code] key=value key=value", for logs and terminals.
  std::string to_string() const;

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Result = std::expected<T, Error>;

// Turns an Error into a failed Result: `return fail(not_found("no_such_tx", "…"));`
inline std::unexpected<Error> fail(Error error) {
  return std::unexpected<Error>(std::move(error));
}

inline Error invalid(std::string code, std::string message) {
  return {ErrorKind::kInvalid, std::move(code), std::move(message), {}, {}};
}
inline Error unauthenticated(std::string code, std::string message) {
  return {ErrorKind::kUnauthenticated, std::move(code), std::move(message), {}, {}};
}
inline Error not_found(std::string code, std::string message) {
  return {ErrorKind::kNotFound, std::move(code), std::move(message), {}, {}};
}
inline Error conflict(std::string code, std::string message) {
  return {ErrorKind::kConflict, std::move(code), std::move(message), {}, {}};
}
inline Error unavailable(std::string code, std::string message) {
  return {ErrorKind::kUnavailable, std::move(code), std::move(message), {}, {}};
}
inline Error internal(std::string code, std::string message) {
  return {ErrorKind::kInternal, std::move(code), std::move(message), {}, {}};
}

class Exception : public std::exception {
 public:
  explicit Exception(Error error) : error_(std::move(error)), what_(error_.to_string()) {}

  const Error& error() const noexcept { return error_; }
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  Error error_;
  std::string what_;
};

// The Error of an Exception; for any other exception, an Error with code "internal" and the exception's text.
Error error_of(const std::exception_ptr& exception);

}  // namespace fencepost
