// Structured logging: a sentence and fields. Text for people, JSON for machines.
//
//   log::info("lease acquired", {{"signer", signer}, {"fencingToken", token}});
//
// Lines are written by a background thread from a bounded queue: when it is full the oldest line is dropped
// and counted (`dropped()`), never the caller delayed. Any thread may log. Before `init` lines go to stderr
// as text, so that a start that fails still speaks.
//
// What is logged cannot forge a line or move a cursor: control characters and broken UTF-8 are escaped. Of each
// value at most 4 KiB are kept. A key that is already taken in the line gets a "_" behind it.
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
  std::string file;            // empty: stderr
  bool echo_warnings = false;  // with a file: warnings and errors also go to stderr; the format is as for the file
};

struct Field {
  using Value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  template <std::same_as<bool> T>  // a plain bool would also take any pointer
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

// Call once, early; `shutdown` writes what is queued and stops the thread. Both while nothing else logs.
// Throws Exception "bad_log_file" when the file cannot be opened; logging then stays as it was.
void init(const Options& options);
void shutdown();

// The level may change at run time, from any thread.
void set_level(Level level);
Level level();
Result<Level> parse_level(std::string_view text);
std::string_view to_string(Level level);

// How many lines the full queue has cost since the start.
std::uint64_t dropped();

void write(Level level, std::string_view message, Fields fields);
// With an error: its code, message and context become fields.
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

// One rendered line without time and level: what `write` queues. For tests.
std::string render(Format format, std::string_view message, const Error* error, Fields fields);

}  // namespace fencepost::log
