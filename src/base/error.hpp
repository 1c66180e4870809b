// How anything in Fencepost says that it went wrong.
//
// Two roads, never mixed:
//   Result<T>   an outcome the caller decides on: not found, conflict, not the leader, would revert.
//   Exception   what only the edge can handle: a lost connection, a broken invariant. Caught in exactly two
//               places, the request handler and the worker loop.
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

// What sort of failure it is, in terms a caller can act on. http/ maps each to one status code.
enum class ErrorKind {
  kInvalid,          // the request is wrong and will stay wrong            400
  kUnauthenticated,  // who are you?                                         401
  kForbidden,        // we know you, and no                                  403
  kNotFound,         //                                                      404
  kConflict,         // the state of things forbids it now                   409
  kTooLarge,         //                                                      413
  kUnprocessable,    // well-formed, but it cannot be done                   422
  kRateLimited,      // slow down                                            429
  kInternal,         // a bug, or a world we did not expect                  500
  kUnavailable,      // try again later, or: the outcome is not known        503
  kTimeout,          //                                                      504
};

struct Error {
  using Context = std::vector<std::pair<std::string, std::string>>;

  ErrorKind kind = ErrorKind::kInternal;
  std::string code;     // stable and machine-readable, e.g. "request_conflict"
  std::string message;  // one sentence for a person; says what to do where that is known
  Context context;      // what a reader needs to find the row, the line, the peer
  std::optional<std::chrono::seconds> retry_after;
  std::string cause;  // for the log only: what the outside world said, which may name hosts, users and files

  // Adds one fact; chains: `return invalid("bad_nonce", "…").with("signer", s);`
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

// `return fail(not_found("no_such_tx", "…"));` in any function that returns a Result.
inline std::unexpected<Error> fail(Error error) {
  return std::unexpected<Error>(std::move(error));
}

inline Error invalid(std::string code, std::string message) {
  return {ErrorKind::kInvalid, std::move(code), std::move(message), {}, {}};
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

// What an exception of any type says, as an Error: an Exception's own, "internal" for the rest.
Error error_of(const std::exception_ptr& exception);

}  // namespace fencepost
