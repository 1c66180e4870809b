#include "doctor/doctor.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/text.hpp"

namespace fencepost::doctor {
namespace {

namespace json = boost::json;

constexpr std::size_t kLongestLine = 1000;

std::string_view word_of(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kWarn:
      return "warn";
    case Status::kFail:
      return "fail";
  }
  std::unreachable();
}

// load_config's message: a headline, then one problem per line, indented.
Findings one_per_problem(std::string_view message) {
  Findings findings;
  while (!message.empty()) {
    const auto end = std::min(message.find('\n'), message.size());
    const auto line = message.substr(0, end);
    message.remove_prefix(std::min(end + 1, message.size()));
    if (line.starts_with("  ")) findings.push_back(failed("config", one_line(line), ""));
  }
  return findings;
}

// For a configuration that cannot be read at all.
std::string_view fix_of_config(const Error& error) {
  if (error.code == "not_up") return "start 'fencepost up' with that --data-dir, or give --config or --dsn instead";
  return "give --config a file that exists and can be read";
}

}  // namespace

Finding passed(std::string check, std::string detail) {
  return {std::move(check), Status::kOk, std::move(detail), ""};
}

Finding warned(std::string check, std::string detail, std::string fix) {
  return {std::move(check), Status::kWarn, std::move(detail), std::move(fix)};
}

Finding failed(std::string check, std::string detail, std::string fix) {
  return {std::move(check), Status::kFail, std::move(detail), std::move(fix)};
}

bool any_failed(std::span<const Finding> findings) {
  return std::ranges::any_of(findings, [](const Finding& finding) { return finding.status == Status::kFail; });
}

std::string render_line(const Finding& finding, std::size_t check_width) {
  // FAIL in capitals, so that it stands out in a terminal without colours.
  const auto status = finding.status == Status::kFail ? "FAIL" : word_of(finding.status);
  auto line = fmt::format("{:<4}  {:<{}}  {}", status, finding.check, check_width, finding.detail);
  if (!finding.fix.empty()) line += fmt::format(" → {}", finding.fix);
  return line;
}

std::string render_json(std::span<const Finding> findings) {
  json::array out;
  for (const auto& finding : findings) {
    json::object entry{
        {"check", finding.check}, {"status", word_of(finding.status)}, {"detail", finding.detail}, {"fix", nullptr}};
    if (!finding.fix.empty()) entry["fix"] = finding.fix;
    out.push_back(std::move(entry));
  }
  // Lists in --json have the same form as lists in the API.
  return json::serialize(json::object{{"items", std::move(out)}, {"nextCursor", nullptr}});
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
    if (out.size() >= kLongestLine) break;
  }
  while (out.ends_with(' ')) out.pop_back();
  return repair_utf8(out);
}

Findings assess_config(const Result<Config>& config, const std::string& file) {
  if (!config) {
    auto problems = one_per_problem(config.error().message);
    if (problems.empty()) {
      problems.push_back(
          failed("config", one_line(config.error().message), std::string(fix_of_config(config.error()))));
    }
    return problems;
  }
  if (config->database.dsn.empty()) {
    return {failed("config", "database.dsn is not set",
                   "set it in the file or as FENCEPOST_DATABASE_DSN; 'fencepost up' starts a database of its own")};
  }
  return {passed("config", file.empty() ? "defaults and environment, no file" : file)};
}

}  // namespace fencepost::doctor
