// What a handler gets and what it gives back.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/value.hpp>

#include "base/error.hpp"
#include "base/uuid.hpp"
#include "http/auth.hpp"
#include "http/uri.hpp"
#include "runtime/async.hpp"

namespace fencepost::http {

enum class Verb { kGet, kHead, kPost, kPut, kPatch, kDelete, kOptions, kOther };

std::string_view to_string(Verb verb);
Verb parse_verb(std::string_view method);

// One request. It owns its texts; every view it hands out is good until the handler has returned its response
// (or, for a stream, until the stream has ended).
class Request {
 public:
  Verb verb() const { return verb_; }
  std::string_view target() const { return target_; }
  std::string_view path() const { return std::string_view(target_).substr(path_begin_, path_size_); }  // as sent
  std::string_view body() const { return body_; }
  const std::string& id() const { return id_; }  // X-Request-Id, or made here
  const std::string& remote() const { return remote_; }

  // Case-insensitive; the first one when there are several.
  std::optional<std::string_view> header(std::string_view name) const;
  // All of them, in their order.
  std::vector<std::string_view> headers(std::string_view name) const;

  // The value captured by "{name}" in the route's pattern, decoded; a uuid is lowercase. Asking for a name that the
  // pattern does not have, or that was declared as another type, is a bug and throws.
  std::string_view param(std::string_view name) const;
  std::int64_t param_id(std::string_view name) const;
  Uuid param_uuid(std::string_view name) const;

  // The first value with that name, or nothing.
  std::optional<std::string_view> query(std::string_view name) const;
  const QueryParameters& query_parameters() const { return query_; }

  // Typed: T is std::string, bool ("true"/"false") or an integer without leading zeros. Nothing when absent;
  // `invalid_parameter` when it does not parse or is given twice.
  template <class T>
  Result<std::optional<T>> query_as(std::string_view name) const;
  template <class T>
  Result<T> query_or(std::string_view name, T fallback) const;

  // The body as JSON, read as base/json.hpp reads: no repeated keys, no integers that would lose digits. Errors:
  // `bad_json` with the place.
  Result<boost::json::value> json() const;

  // The caller; nullptr on an open route.
  const Principal* principal() const { return principal_ ? &*principal_ : nullptr; }

  // How the server, and a test of a handler, fills one in. Errors of set_target: `bad_target`, and those of
  // http/uri.hpp.
  void reset();
  void set_method(std::string_view method) { verb_ = parse_verb(method); }
  Result<void> set_target(std::string_view target);
  void add_header(std::string_view name, std::string_view value);
  void set_param(std::string_view name, std::string value) { params_.emplace_back(name, std::move(value)); }
  std::string& mutable_body() { return body_; }
  void set_id(std::string id) { id_ = std::move(id); }
  void set_remote(std::string remote) { remote_ = std::move(remote); }
  void set_principal(Principal principal) { principal_ = std::move(principal); }
  std::size_t header_count() const { return fields_.size(); }
  std::size_t header_bytes() const { return header_text_.size(); }

 private:
  // Offsets, since the text they point into grows while headers are added.
  struct Field {
    std::uint32_t name, value, end;
  };
  std::string_view name_of(const Field& f) const { return view(f.name, f.value); }
  std::string_view value_of(const Field& f) const { return view(f.value, f.end); }
  std::string_view view(std::uint32_t from, std::uint32_t to) const {
    return std::string_view(header_text_).substr(from, to - from);
  }
  Result<std::optional<std::string_view>> single_query(std::string_view name) const;

  Verb verb_ = Verb::kGet;
  std::string target_;
  std::size_t path_begin_ = 0;  // in target_: views would not survive a move
  std::size_t path_size_ = 0;
  std::string header_text_;
  std::vector<Field> fields_;
  QueryParameters query_;
  std::vector<std::pair<std::string_view, std::string>> params_;
  std::string body_;
  std::string id_;
  std::string remote_;
  std::optional<Principal> principal_;
};

class EventStream;
// Runs after the head has been sent; see http/sse.hpp for what it may do and how it ends.
using StreamFunction = std::function<awaitable<>(EventStream&)>;

struct Response {
  unsigned status = 200;
  std::vector<std::pair<std::string, std::string>> headers;  // no Content-Length, Date, Connection: the server's
  std::string body;
  StreamFunction stream;       // set by Response::events; the body is empty then
  std::optional<Error> error;  // what a problem document was made from, in full, for the log

  Response& with(std::string name, std::string value) & {
    headers.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  Response&& with(std::string name, std::string value) && {
    headers.emplace_back(std::move(name), std::move(value));
    return std::move(*this);
  }

  static Response json(unsigned status, const boost::json::value& value);
  static Response text(unsigned status, std::string text, std::string content_type = "text/plain; charset=utf-8");
  static Response no_content();
  // Server-sent events.
  static Response events(StreamFunction stream);
  // application/problem+json (http/problem.hpp).
  static Response problem(const Error& error, const Request& request);
};

// The reason phrase, "Unknown" for a status without one.
std::string_view reason_phrase(unsigned status);

Error bad_parameter(std::string_view name, std::string_view expected, std::string_view got);

namespace detail {
template <class T>
std::optional<T> parse_parameter(std::string_view text) {
  if constexpr (std::same_as<T, std::string>) {
    return std::string(text);
  } else if constexpr (std::same_as<T, bool>) {
    if (text == "true") return true;
    if (text == "false") return false;
    return std::nullopt;
  } else {
    static_assert(std::integral<T>);
    const auto digits = text.substr(text.starts_with('-') ? 1 : 0);
    if (digits.starts_with('0') && text != "0") return std::nullopt;
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
  }
}

template <class T>
constexpr std::string_view parameter_type() {
  if constexpr (std::same_as<T, bool>)
    return "true or false";
  else if constexpr (std::unsigned_integral<T>)
    return "an unsigned integer";
  else
    return "an integer";
}
}  // namespace detail

template <class T>
Result<std::optional<T>> Request::query_as(std::string_view name) const {
  auto text = single_query(name);
  if (!text) return fail(std::move(text.error()));
  if (!*text) return std::optional<T>();
  auto value = detail::parse_parameter<T>(**text);
  if (!value) return fail(bad_parameter(name, detail::parameter_type<T>(), **text));
  return value;
}

template <class T>
Result<T> Request::query_or(std::string_view name, T fallback) const {
  auto value = query_as<T>(name);
  if (!value) return fail(std::move(value.error()));
  return *value ? std::move(**value) : std::move(fallback);
}

}  // namespace fencepost::http
