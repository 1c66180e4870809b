#include "runtime/log.hpp"

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <memory>
#include <utility>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace fencepost::log {
namespace {

constexpr auto kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %^%-5l%$ %v";
constexpr auto kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})";

constexpr std::array<std::pair<std::string_view, Level>, 5> kLevels{{{"debug", Level::kDebug},
                                                                     {"info", Level::kInfo},
                                                                     {"warn", Level::kWarn},
                                                                     {"error", Level::kError},
                                                                     {"off", Level::kOff}}};

// The logger is the one global of the house (docs/architecture.md). It is replaced only by init and shutdown,
// which run while nothing else does.
struct State {
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::logger> logger;
  std::atomic<Format> format{Format::kText};
  std::atomic<Level> level{Level::kInfo};
};

State& state() {
  static State instance;
  return instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
    case Level::kOff: return spdlog::level::off;
  }
  std::unreachable();
}

void append_json_string(std::string& out, std::string_view text) {
  out += boost::json::serialize(boost::json::value(text));
}

void append_text_value(std::string& out, std::string_view text) {
  // Quoted whenever a reader or a parser could be misled, which includes every attempt to forge a line.
  const bool plain = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return c > ' ' && c != '"' && c != '=' && c != 0x7f;
  });
  if (plain) {
    out += text;
  } else {
    append_json_string(out, text);
  }
}

void append_value(std::string& out, Format format, const Field::Value& value) {
  std::visit(
      [&](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string_view>) {
          format == Format::kJson ? append_json_string(out, v) : append_text_value(out, v);
        } else {
          fmt::format_to(std::back_inserter(out), "{}", v);
        }
      },
      value);
}

void append_field(std::string& out, Format format, const Field& field) {
  if (format == Format::kJson) {
    out += ',';
    append_json_string(out, field.key);
    out += ':';
  } else {
    out += ' ';
    out += field.key;
    out += '=';
  }
  append_value(out, format, field.value);
}

void emit(Level level, std::string_view message, const Error* error, Fields fields) {
  auto& s = state();
  if (level < s.level.load(std::memory_order_relaxed)) return;
  const auto line = render(s.format.load(std::memory_order_relaxed), message, error, fields);
  if (s.logger) {
    s.logger->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
  } else {
    fmt::print(stderr, "{} {}\n", to_string(level), line);
  }
}

}  // namespace

std::string render(Format format, std::string_view message, const Error* error, Fields fields) {
  std::string out;
  out.reserve(128);
  if (format == Format::kJson) {
    out += R"("message":)";
    append_json_string(out, message);
  } else if (std::ranges::all_of(message, [](unsigned char c) { return c >= ' '; })) {
    out += message;
  } else {
    append_json_string(out, message);
  }
  for (const auto& field : fields) append_field(out, format, field);
  if (error != nullptr) {
    append_field(out, format, {"code", error->code});
    append_field(out, format, {"error", error->message});
    for (const auto& [key, value] : error->context) append_field(out, format, {key, value});
  }
  return out;
}

void init(const Options& options) {
  shutdown();
  auto& s = state();
  spdlog::sink_ptr sink;
  if (!options.file.empty()) {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file);
  } else if (options.format == Format::kJson) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  }
  sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      options.format == Format::kJson ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc));
  s.pool = std::make_shared<spdlog::details::thread_pool>(options.queue_size, 1);
  auto logger = std::make_shared<spdlog::async_logger>("fencepost", std::move(sink), s.pool,
                                                       spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(spdlog::level::debug);  // `level` below decides, before a line is rendered
  logger->flush_on(spdlog::level::debug);
  s.format = options.format;
  s.level = options.level;
  s.logger = std::move(logger);
}

void shutdown() {
  auto& s = state();
  s.logger.reset();
  s.pool.reset();  // joins the writer once the queue is empty
}

void set_level(Level level) { state().level = level; }

Level level() { return state().level; }

Result<Level> parse_level(std::string_view text) {
  for (const auto& [name, level] : kLevels) {
    if (name == text) return level;
  }
  return fail(invalid("bad_log_level", fmt::format("expected debug, info, warn, error or off, got '{}'", text)));
}

std::string_view to_string(Level level) { return kLevels[static_cast<std::size_t>(level)].first; }

std::uint64_t dropped() {
  const auto& s = state();
  return s.pool ? s.pool->overrun_counter() : 0;
}

void write(Level level, std::string_view message, Fields fields) { emit(level, message, nullptr, fields); }

void write(Level level, std::string_view message, const Error& error, Fields fields) {
  emit(level, message, &error, fields);
}

}  // namespace fencepost::log
