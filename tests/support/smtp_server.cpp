#include "tests/support/smtp_server.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/error.hpp"
#include "base/name_table.hpp"
#include "runtime/private_file.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::chrono_literals;

// Debian's python3 has python3-aiosmtpd; another python3 in PATH does not.
constexpr auto kPython = "/usr/bin/python3";

// As smtp_server.py calls them.
constexpr auto kSteps = name_table<SmtpStep>({
    {SmtpStep::kConnect, "connect"},
    {SmtpStep::kEhlo, "EHLO"},
    {SmtpStep::kHelo, "HELO"},
    {SmtpStep::kStartTls, "STARTTLS"},
    {SmtpStep::kAuth, "AUTH"},
    {SmtpStep::kMail, "MAIL"},
    {SmtpStep::kRcpt, "RCPT"},
    {SmtpStep::kData, "DATA"},
    {SmtpStep::kBody, "body"},
    {SmtpStep::kEnd, "end"},
    {SmtpStep::kTaken, "taken"},
    {SmtpStep::kIdle, "idle"},
});

constexpr auto kFaults = name_table<SmtpFault>({
    {SmtpFault::kReply, "reply"},
    {SmtpFault::kDrop, "drop"},
    {SmtpFault::kHang, "hang"},
});

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Renamed into place: the server may read the file at any time.
void write_json(const fs::path& path, const json::object& value) {
  const auto written = write_private_file(path, json::serialize(value));
  if (!written) throw Exception(written.error());
}

// The port in the line "port 41234", which the server prints once it listens; 0 before.
std::uint16_t announced_port(const std::string& log) {
  constexpr std::string_view kBefore = "port ";
  const auto at = log.find(kBefore);
  std::uint16_t port = 0;
  if (at != std::string::npos && log.find('\n', at) != std::string::npos) {
    std::from_chars(log.data() + at + kBefore.size(), log.data() + log.size(), port);
  }
  return port;
}

json::value to_json(const SmtpRule& rule) {
  return {{"at", kSteps.name(rule.at)}, {"fault", kFaults.name(rule.fault)},
          {"reply", rule.reply},        {"recipient", rule.recipient},
          {"times", rule.times},        {"eachRecipient", rule.each_recipient}};
}

// The entries of that kind in the server's log; the server may be writing its last line.
std::vector<json::object> entries(const fs::path& log, std::string_view kind) {
  std::vector<json::object> out;
  std::istringstream lines(read_all(log));
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    auto entry = json::parse(line).as_object();
    if (entry.at("kind").as_string() == kind) out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

std::string ReceivedMail::message_id() const {
  constexpr std::string_view kBefore = "\r\nMessage-ID: <";
  const auto at = raw.find(kBefore);
  if (at == std::string::npos) return "";
  const auto begin = at + kBefore.size();
  return raw.substr(begin, raw.find('>', begin) - begin);
}

SmtpServer::SmtpServer(SmtpServerOptions options) : options_(std::move(options)) {
  behave({});
  start();
}

SmtpServer::~SmtpServer() {
  stop();
}

void SmtpServer::start() {
  const auto settings = dir_ / "settings.json";
  const auto out = dir_ / "smtp.out";
  const auto err = dir_ / "smtp.err";
  write_json(settings, {{"port", port_},
                        {"username", options_.username},
                        {"password", options_.password},
                        {"certificate", options_.certificate_file},
                        {"key", options_.key_file},
                        {"implicitTls", options_.implicit_tls}});
  fs::remove(out);
  auto child = ChildProcess::start({.argv = {kPython, source_dir() / "tests" / "support" / "smtp_server.py", settings},
                                    .out = Output::file(out),
                                    .err = Output::file(err)});
  if (!child) throw Exception(child.error());
  child_ = std::move(*child);
  std::uint16_t port = 0;
  const bool up = eventually([&] {
    port = announced_port(read_all(out));
    return port != 0 || !child_->running();
  });
  if (!up || port == 0) {
    throw Exception(unavailable("smtp_server_failed", "the SMTP server does not start:\n" + read_all(err)));
  }
  port_ = port;
}

void SmtpServer::stop() {
  child_->stop_blocking({{SIGKILL, 0s}});
}

void SmtpServer::restart() {
  start();
}

std::string SmtpServer::url() const {
  return fmt::format("{}://127.0.0.1:{}", options_.implicit_tls ? "smtps" : "smtp", port_);
}

void SmtpServer::behave(const std::vector<SmtpRule>& rules) {
  json::array list;
  for (const auto& rule : rules) list.push_back(to_json(rule));
  write_json(dir_ / "rules.json", {{"version", ++rules_version_}, {"rules", std::move(list)}});
}

std::vector<ReceivedMail> SmtpServer::mails() const {
  std::vector<ReceivedMail> out;
  for (const auto& entry : entries(dir_ / "log.jsonl", "mail")) {
    out.push_back({.connection = entry.at("connection").to_number<std::size_t>(),
                   .from = std::string(entry.at("sender").as_string()),
                   .recipients = json::value_to<std::vector<std::string>>(entry.at("recipients")),
                   .raw = read_all(dir_ / fmt::format("{}.eml", out.size() + 1))});
  }
  return out;
}

std::size_t SmtpServer::received() const {
  return entries(dir_ / "log.jsonl", "mail").size();
}

std::size_t SmtpServer::connections() const {
  return entries(dir_ / "log.jsonl", "connection").size();
}

std::vector<std::string> SmtpServer::commands() const {
  std::vector<std::string> out;
  for (const auto& entry : entries(dir_ / "log.jsonl", "command")) out.emplace_back(entry.at("line").as_string());
  return out;
}

}  // namespace fencepost::test
