#include "runtime/log.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/text.hpp"

namespace fencepost::log {
namespace {

constexpr auto kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v";
constexpr auto kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})";

constexpr std::size_t kMaxValueBytes = 4096;
constexpr std::array<std::string_view, 3> kReservedKeys{"time", "level", "message"};

constexpr std::array<std::pair<std::string_view, Level>, 5> kLevels{{{"debug", Level::kDebug},
                                                                     {"info", Level::kInfo},
                                                                     {"warn", Level::kWarn},
                                                                     {"error", Level::kError},
                                                                     {"off", Level::kOff}}};

// The logger is the only global of the program (docs/architecture.md). Only init and shutdown replace it, while no
// other thread logs.
struct State {
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::logger> logger;
  std::atomic<Format> format{Format::kText};
  std::atomic<Level> level{Level::kInfo};
  std::uint64_t dropped_before = 0;  // by earlier pools
};

State& state() {
  static State instance;
  return instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      return spdlog::level::off;
  }
  std::unreachable();
}

// spdlog would write "warning"; the configuration and the docs say "warn".
class LevelName final : public spdlog::custom_flag_formatter {
 public:
  explicit LevelName(std::size_t width) : width_(width) {}

  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const auto& match = *std::ranges::find(kLevels, message.level, [](const auto& l) { return to_spdlog(l.second); });
    fmt::format_to(std::back_inserter(out), "{:<{}}", match.first, width_);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LevelName>(width_); }

 private:
  std::size_t width_;
};

void append_json_string(std::string& out, std::string_view text) {
  auto valid = repair_utf8(text.substr(0, kMaxValueBytes));
  if (text.size() > kMaxValueBytes) valid += "…";
  out += boost::json::serialize(boost::json::value(valid));
}

// Appends the text unchanged when it is unambiguous; otherwise quoted and escaped, so that no value can forge a line.
// `special` are printable characters that have a meaning at this place of the line.
void append_text(std::string& out, std::string_view text, std::string_view special) {
  const auto escaped = quote(text, kMaxValueBytes);
  const bool changed = escaped.size() != text.size() + 2;
  if (changed || text.find_first_of(special) != std::string_view::npos) {
    out += escaped;
  } else {
    out += text;
  }
}

struct ValueWriter {
  std::string& out;
  Format format;

  void operator()(std::string_view text) const {
    if (format == Format::kJson) {
      append_json_string(out, text);
    } else if (text.empty()) {
      out += R"("")";
    } else {
      append_text(out, text, " =");
    }
  }
  void operator()(double number) const {
    if (format == Format::kJson && !std::isfinite(number)) {
      out += "null";  // JSON has neither NaN nor infinity
    } else {
      fmt::format_to(std::back_inserter(out), "{}", number);
    }
  }
  void operator()(const auto& integer_or_bool) const { fmt::format_to(std::back_inserter(out), "{}", integer_or_bool); }
};

// Appends fields under distinct keys: a log collector may refuse a line with a repeated key.
class FieldWriter {
 public:
  FieldWriter(std::string& out, Format format) : out_(out), format_(format) {}

  void append(std::string_view key, const Field::Value& value) {
    const auto& unique = used_.emplace_back(unused(key));
    if (format_ == Format::kJson) {
      out_ += ',';
      append_json_string(out_, unique);
      out_ += ':';
    } else {
      out_ += ' ';
      append_text(out_, unique, " =");
      out_ += '=';
    }
    std::visit(ValueWriter{out_, format_}, value);
  }

 private:
  std::string unused(std::string_view key) const {
    std::string candidate(key);
    while (std::ranges::find(kReservedKeys, candidate) != kReservedKeys.end() ||
           std::ranges::find(used_, candidate) != used_.end()) {
      candidate += '_';
    }
    return candidate;
  }

  std::string& out_;
  Format format_;
  std::vector<std::string> used_;
};

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
  } else {
    append_text(out, message, {});
  }
  FieldWriter writer(out, format);
  for (const auto& field : fields) writer.append(field.key, field.value);
  if (error != nullptr) {
    writer.append("code", std::string_view(error->code));
    writer.append("error", std::string_view(error->message));
    for (const auto& [key, value] : error->context) writer.append(key, std::string_view(value));
    if (!error->cause.empty()) writer.append("cause", std::string_view(error->cause));
  }
  return out;
}

namespace {

spdlog::sink_ptr with_format(spdlog::sink_ptr sink, Format format) {
  const bool json = format == Format::kJson;
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<LevelName>('l', json ? std::size_t{0} : std::size_t{5});
  formatter->set_pattern(json ? kJsonPattern : kTextPattern);
  sink->set_formatter(std::move(formatter));
  return sink;
}

spdlog::sink_ptr stderr_sink(Format format) {
  if (format == Format::kJson) return with_format(std::make_shared<spdlog::sinks::stderr_sink_mt>(), format);
  return with_format(std::make_shared<spdlog::sinks::stderr_color_sink_mt>(), format);
}

spdlog::sink_ptr file_sink(const std::string& file, Format format) {
  try {
    return with_format(std::make_shared<spdlog::sinks::basic_file_sink_mt>(file), format);
  } catch (const spdlog::spdlog_ex& e) {
    throw Exception(invalid("bad_log_file", e.what()).with("file", file));
  }
}

std::vector<spdlog::sink_ptr> make_sinks(const Options& options) {
  if (options.file.empty()) return {stderr_sink(options.format)};
  std::vector<spdlog::sink_ptr> sinks{file_sink(options.file, options.format)};
  if (options.echo_warnings) {
    sinks.push_back(stderr_sink(options.format));
    sinks.back()->set_level(spdlog::level::warn);
  }
  return sinks;
}

}  // namespace

void init(const Options& options) {
  const auto sinks = make_sinks(options);
  shutdown();
  auto& s = state();
  s.pool = std::make_shared<spdlog::details::thread_pool>(options.queue_size, 1);
  auto logger = std::make_shared<spdlog::async_logger>("fencepost", sinks.begin(), sinks.end(), s.pool,
                                                       spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(spdlog::level::debug);  // `level` below filters, before a line is rendered
  logger->flush_on(spdlog::level::debug);
  s.format = options.format;
  s.level = options.level;
  s.logger = std::move(logger);
}

void shutdown() {
  auto& s = state();
  if (!s.pool) return;
  s.dropped_before += s.pool->overrun_counter();
  s.logger.reset();
  s.pool.reset();  // joins the writer once the queue is empty
  s.format = Format::kText;
}

void set_level(Level level) {
  state().level = level;
}

Level level() {
  return state().level;
}

Result<Level> parse_level(std::string_view text) {
  for (const auto& [name, level] : kLevels) {
    if (name == text) return level;
  }
  return fail(invalid("bad_log_level", fmt::format("expected debug, info, warn, error or off, got {}", quote(text))));
}

std::string_view to_string(Level level) {
  return kLevels[static_cast<std::size_t>(level)].first;
}

std::uint64_t dropped() {
  const auto& s = state();
  return s.dropped_before + (s.pool ? s.pool->overrun_counter() : 0);
}

void write(Level level, std::string_view message, Fields fields) {
  emit(level, message, nullptr, fields);
}

void write(Level level, std::string_view message, const Error& error, Fields fields) {
  emit(level, message, &error, fields);
}

}  // namespace fencepost::log
