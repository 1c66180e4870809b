// Structured logging: a sentence and fields. Text for people, JSON for machines.
//
//   log::info("lease acquired", {{"signer", signer}, {"fencingToken", token}});
//
// A background thread writes the lines from a bounded queue. When the queue is full, the oldest line is dropped and
// counted (`dropped()`); the caller never waits. Any thread may log. Before `init`, lines go to stderr as text, so that
// a failed start is still reported.
//
// Logged values cannot forge a line or move a cursor: control characters and broken UTF-8 are escaped. Values are cut
// to 4 KiB. A key that the line already has gets a "_" appended.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.hpp"

namespace fencepost::log {

enum class Level { kDebug, kInfo, kWarn, kError, kOff };
enum class Format { kText, kJson };

struct Options {
  Level level = Level::kInfo;
  Format format = Format::kText;
  std::size_t queue_size = 8192;
  std::string file;            // empty means stderr
  bool echo_warnings = false;  // with a file: also write warnings and errors to stderr, in the same format
};

struct Field {
  using Value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  template <std::same_as<bool> T>  // a plain bool parameter would also accept any pointer
  Field(std::string_view k, T v) : key(k), value(v) {}
  Field(std::string_view k, double v) : key(k), value(v) {}
  template <std::signed_integral T>
  Field(std::string_view k, T v) : key(k), value(static_cast<std::int64_t>(v)) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Field(std::string_view k, T v) : key(k), value(static_cast<std::uint64_t>(v)) {}

  std::string_view key;
  Value value;
};
using Fields = std::initializer_list<Field>;

// Call `init` once, early; `shutdown` writes the queued lines and stops the thread. Requires: no other thread logs
// during either call. Throws Exception "bad_log_file" when the file cannot be opened, and leaves logging unchanged.
void init(const Options& options);
void shutdown();

// The level may change at run time. Any thread may call.
void set_level(Level level);
Level level();
Result<Level> parse_level(std::string_view text);
std::string_view to_string(Level level);

// How many lines were dropped because the queue was full, since the start.
std::uint64_t dropped();

void write(Level level, std::string_view message, Fields fields);
// The error's code, message and context become fields.
void write(Level level, std::string_view message, const Error& error, Fields fields);

inline void debug(std::string_view message, Fields fields = {}) {
  write(Level::kDebug, message, fields);
}
inline void info(std::string_view message, Fields fields = {}) {
  write(Level::kInfo, message, fields);
}
inline void warn(std::string_view message, Fields fields = {}) {
  write(Level::kWarn, message, fields);
}
inline void error(std::string_view message, Fields fields = {}) {
  write(Level::kError, message, fields);
}
inline void warn(std::string_view message, const Error& e, Fields fields = {}) {
  write(Level::kWarn, message, e, fields);
}
inline void error(std::string_view message, const Error& e, Fields fields = {}) {
  write(Level::kError, message, e, fields);
}

// One rendered line without time and level, as `write` queues it. For tests.
std::string render(Format format, std::string_view message, const Error* error, Fields fields);

}  // namespace fencepost::log
