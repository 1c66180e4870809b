#include "runtime/log.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>
#include <type_traits>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.hpp"
#include "base/secret.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost {
namespace {

using log::Format;
using log::Level;
using testing::ElementsAre;
using testing::HasSubstr;

static_assert(std::is_constructible_v<log::Field, const char*, std::string>);
static_assert(!std::is_constructible_v<log::Field, const char*, Secret>, "a secret must not be loggable");
static_assert(!std::is_constructible_v<log::Field, const char*, void*>, "a pointer is not a bool");

// Gives each test its own directory, and restores the logger afterwards.
class LogTest : public testing::Test {
 protected:
  ~LogTest() override {
    log::shutdown();
    log::set_level(Level::kInfo);
  }

  std::string path() const { return directory_ / "log"; }
  std::vector<std::string> lines() const {
    std::ifstream in(path());
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }

 private:
  test::TempDir directory_{"log"};
};

std::string text(std::string_view message, log::Fields fields = {}, const Error* error = nullptr) {
  return log::render(Format::kText, message, error, fields);
}
std::string json(std::string_view message, log::Fields fields = {}, const Error* error = nullptr) {
  return log::render(Format::kJson, message, error, fields);
}

TEST(log, renders_a_sentence_and_fields) {
  const std::string signer = "0xab";
  EXPECT_EQ(text("lease acquired", {{"signer", signer}, {"token", 7}, {"n", 7U}, {"ok", true}, {"s", 0.5}}),
            "lease acquired signer=0xab token=7 n=7 ok=true s=0.5");
  EXPECT_EQ(json("lease acquired", {{"signer", signer}, {"token", -7}, {"n", 7U}, {"ok", true}, {"s", 0.5}}),
            R"("message":"lease acquired","signer":"0xab","token":-7,"n":7,"ok":true,"s":0.5)");
}

TEST(log, renders_an_error_with_its_context) {
  const auto error = conflict("request_conflict", "already taken").with("id", "1");
  EXPECT_EQ(text("failed", {{"a", "b"}}, &error), R"(failed a=b code=request_conflict error="already taken" id=1)");
  EXPECT_EQ(json("failed", {{"a", "b"}}, &error),
            R"("message":"failed","a":"b","code":"request_conflict","error":"already taken","id":"1")");
}

TEST(log, quotes_text_that_could_be_misread) {
  EXPECT_EQ(text("m", {{"k", "two words"}}), R"(m k="two words")");
  EXPECT_EQ(text("m", {{"k", "a=b"}}), R"(m k="a=b")");
  EXPECT_EQ(text("m", {{"k", "say \"hi\""}}), R"(m k="say \"hi\"")");
  EXPECT_EQ(text("m", {{"k", ""}}), R"(m k="")");
  EXPECT_EQ(text("m", {{"k", "größe"}}), "m k=größe");
}

TEST(log, values_cannot_forge_a_line_or_control_a_terminal) {
  const std::string evil = "x\n2024-01-01 ERROR forged\r\x1b[2J\x7f\xc2\x9b\xff";
  const auto error = internal(evil, evil).with(evil, evil);
  for (const auto format : {Format::kText, Format::kJson}) {
    const auto line = log::render(format, evil, &error, {{evil, evil}});
    for (const char c : line) ASSERT_FALSE(c >= 0 && c < ' ') << "a control character in " << line;
    EXPECT_THAT(line, HasSubstr("\\n2024"));
  }
  EXPECT_EQ(text("a\nb", {{"k", "\xff"}}), R"("a\nb" k="\xff")");
  EXPECT_EQ(json("a\nb", {{"k", "\xff"}}), "\"message\":\"a\\nb\",\"k\":\"\xef\xbf\xbd\"");
}

TEST(log, a_repeated_key_is_renamed) {
  const auto error = internal("c", "e").with("code", "1").with("id", "2");
  EXPECT_EQ(json("m", {{"id", 1}, {"level", 2}, {"id", 3}}, &error),
            R"("message":"m","id":1,"level_":2,"id_":3,"code":"c","error":"e","code_":"1","id__":"2")");
}

TEST(log, nan_and_infinity_become_null_in_json) {
  EXPECT_EQ(json("m", {{"x", std::numeric_limits<double>::infinity()}, {"y", std::nan("")}}),
            R"("message":"m","x":null,"y":null)");
}

TEST(log, long_values_are_cut) {
  const std::string big(100'000, 'x');
  EXPECT_LT(text("m", {{"k", big}}).size(), 4200U);
  EXPECT_LT(json("m", {{"k", big}}).size(), 4200U);
  EXPECT_THAT(json("m", {{"k", big}}), HasSubstr("x…\""));
}

TEST(log, levels_have_names) {
  for (const auto level : {Level::kDebug, Level::kInfo, Level::kWarn, Level::kError, Level::kOff}) {
    EXPECT_EQ(log::parse_level(log::to_string(level)), level);
  }
  EXPECT_EQ(log::parse_level("warning").error().message, "expected debug, info, warn, error or off, got \"warning\"");
}

TEST_F(LogTest, writes_text_with_time_and_level) {
  log::init({.file = path()});
  log::info("one", {{"k", 1}});
  log::warn("two");
  log::error("three", internal("c", "m"));
  log::shutdown();
  // POSIX regular expressions have no \\d.
  const std::string time = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z ";
  const auto at = [&](const std::string& rest) { return testing::ContainsRegex(time + rest); };
  EXPECT_THAT(lines(), ElementsAre(at("info  one k=1$"), at("warn  two$"), at("error three code=c error=m$")));
}

TEST_F(LogTest, writes_json_that_parses_line_by_line) {
  log::init({.level = Level::kDebug, .format = Format::kJson, .file = path()});
  log::debug("one \"quoted\"", {{"n", 1}, {"text", "line\nbreak"}});
  log::warn("two", conflict("c", "m").with("level", "x"));
  log::shutdown();
  const auto written = lines();
  ASSERT_EQ(written.size(), 2U);
  const auto first = parse_json(written[0], 4096);
  ASSERT_TRUE(first.has_value()) << written[0];
  EXPECT_EQ(first->at("message"), "one \"quoted\"");
  EXPECT_EQ(first->at("level"), "debug");
  EXPECT_EQ(first->at("n"), 1);
  EXPECT_EQ(first->at("text"), "line\nbreak");
  EXPECT_EQ(first->at("time").as_string().size(), std::string_view("2024-01-01T00:00:00.000000Z").size());
  const auto second = parse_json(written[1], 4096);
  ASSERT_TRUE(second.has_value()) << written[1];
  EXPECT_EQ(second->at("level"), "warn");
  EXPECT_EQ(second->at("level_"), "x");
}

TEST_F(LogTest, the_level_changes_at_run_time) {
  log::init({.level = Level::kWarn, .file = path()});
  log::info("hidden");
  log::set_level(Level::kDebug);
  EXPECT_EQ(log::level(), Level::kDebug);
  log::debug("shown");
  log::set_level(Level::kOff);
  log::error("hidden too");
  log::shutdown();
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("debug shown")));
}

TEST_F(LogTest, a_file_that_cannot_be_opened_is_an_error_and_changes_nothing) {
  log::init({.file = path()});
  try {
    log::init({.file = path() + "/below/a/file"});
    FAIL() << "nothing was thrown";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, "bad_log_file");
  }
  log::info("still here");
  log::shutdown();
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("still here")));
}

TEST_F(LogTest, warnings_are_echoed_to_stderr_when_asked) {
  testing::internal::CaptureStderr();
  log::init({.file = path(), .echo_warnings = true});
  log::info("quiet");
  log::warn("loud");
  log::shutdown();
  const auto echoed = testing::internal::GetCapturedStderr();
  EXPECT_THAT(echoed, HasSubstr("warn  loud"));
  EXPECT_THAT(echoed, testing::Not(HasSubstr("quiet")));
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("info  quiet"), HasSubstr("warn  loud")));
}

TEST_F(LogTest, many_threads_write_whole_lines) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  log::init({.format = Format::kJson, .queue_size = kThreads * kEach, .file = path()});
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < kEach; ++i) log::info("line", {{"thread", t}, {"i", i}});
      });
    }
  }
  log::shutdown();
  const auto written = lines();
  EXPECT_EQ(written.size(), std::size_t{kThreads * kEach});
  for (const auto& line : written) ASSERT_TRUE(parse_json(line, 4096).has_value()) << line;
}

// A pipe without a reader blocks the writer, as a full disk or a hung terminal would.
TEST_F(LogTest, a_full_queue_drops_lines_and_counts_them_and_never_blocks) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const int reader = ::open(path().c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  constexpr std::uint64_t kLines = 20'000;
  const auto dropped_before = log::dropped();
  log::init({.queue_size = 16, .file = path()});
  for (std::uint64_t i = 0; i < kLines; ++i) log::info("a line that is long enough to fill a pipe soon", {{"i", i}});
  const auto dropped = log::dropped() - dropped_before;
  EXPECT_GT(dropped, 0U);

  ASSERT_EQ(::fcntl(reader, F_SETFL, 0), 0);
  std::string received;
  std::jthread drain([&] {
    std::array<char, 65536> chunk;
    for (ssize_t got; (got = ::read(reader, chunk.data(), chunk.size())) > 0;) {
      received.append(chunk.data(), static_cast<std::size_t>(got));
    }
  });
  log::shutdown();
  drain.join();
  ::close(reader);
  EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(received, '\n')) + dropped, kLines);
  EXPECT_THAT(received, HasSubstr(fmt::format(" i={}\n", kLines - 1))) << "the newest line survives";
  EXPECT_EQ(log::dropped() - dropped_before, dropped) << "the count outlives the writer";
}

}  // namespace
}  // namespace fencepost
