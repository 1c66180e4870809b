#include "cli/transfer_commands.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "http/uri.hpp"

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/commands.hpp"
#include "cli/transfer_view.hpp"
#include "cli/transfer_watcher.hpp"

namespace fencepost {
namespace {

namespace json = boost::json;

constexpr auto kAuditTime = std::chrono::minutes(10);  // it reads every table of the economy
constexpr std::size_t kStatementLines = 50;

std::string transfer_target(const std::string& transfer_id) {
  return "/api/v1/transfers/" + http::percent_encode(transfer_id);
}

std::string account_target(const std::string& guild, const std::string& member) {
  return fmt::format("/api/v1/guilds/{}/accounts/{}", http::percent_encode(guild), http::percent_encode(member));
}

std::string with_cursor(std::string target, const std::string& cursor) {
  return cursor.empty() ? target : fmt::format("{}&cursor={}", target, http::percent_encode(cursor));
}

// The caller's key, or a new one. It is shown before it is used: whoever loses the answer can ask again without paying
// twice.
std::string key_or_new(const std::string& given) {
  if (!given.empty()) return given;
  auto key = new_request_id();
  fmt::print(stderr, "key {}: repeat with --key to retry safely\n", key);
  return key;
}

int show(const Result<json::value>& answer, bool as_json, std::string (*details)(const json::value&)) {
  if (!answer) return report(answer.error());
  if (as_json) {
    print_json(*answer);
  } else {
    fmt::print("{}", details(*answer));
  }
  return kExitDone;
}

int watch(Api& api, const std::string& transfer_id, const TransferWatchOptions& options) {
  const auto world = terminal_world(api);
  const auto code = watch_transfer(world, transfer_target(transfer_id), options);
  return code ? *code : report(code.error());
}

}  // namespace

json::object transfer_body(const TransferSendFlags& flags, const std::string& key) {
  json::object body{{"guildId", flags.guild}, {"initiatorId", flags.from}, {"targetId", flags.to}};
  body["amount"] = flags.amount;
  body["idempotencyKey"] = key;
  if (!flags.reason.empty()) body["reason"] = flags.reason;
  if (!flags.mode.empty()) body["mode"] = flags.mode;
  if (flags.expires_hours) body["expiresHours"] = *flags.expires_hours;
  return body;
}

int transfer_send_command(const TransferSendFlags& flags) {
  const auto timeout = read_timeout(flags.timeout);
  if (!timeout) return report(timeout.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto transfer = api->post("/api/v1/transfers", transfer_body(flags, key_or_new(flags.key)), true);
  // What is done when the answer comes has nothing to wait for.
  const bool waits = flags.wait && transfer && text_at(*transfer, "mode") == "pool";
  if (!waits) return show(transfer, flags.json, transfer_details);
  const auto transfer_id = text_at(*transfer, "transferId");
  if (!flags.json) fmt::print("transfer {}\n", transfer_id);
  return watch(*api, transfer_id, {.timeout = *timeout, .json = flags.json});
}

int transfer_get_command(const TransferFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  return show(api->get(transfer_target(flags.transfer_id)), flags.json, transfer_details);
}

int transfer_cancel_command(const TransferFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto cancelled = api->post(transfer_target(flags.transfer_id) + "/cancel", json::object{}, false);
  return show(cancelled, flags.json, transfer_details);
}

std::string transfer_list_target(const TransferListFlags& flags, std::size_t limit, const std::string& cursor) {
  auto target = fmt::format("/api/v1/transfers?guildId={}&limit={}", http::percent_encode(flags.guild), limit);
  if (!flags.status.empty()) target += "&status=" + http::percent_encode(flags.status);
  return with_cursor(std::move(target), cursor);
}

int transfer_list_command(const TransferListFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto list = read_pages(*api, flags.limit, [&](std::size_t limit, const std::string& cursor) {
    return transfer_list_target(flags, limit, cursor);
  });
  if (!list) return report(list.error());
  print_list(*list, flags.json, "no transfers", transfer_table);
  return kExitDone;
}

int transfer_watch_command(const TransferWatchFlags& flags) {
  const auto timeout = read_timeout(flags.timeout);
  if (!timeout) return report(timeout.error());
  auto api = connect(flags.transfer.api);
  if (!api) return report(api.error());
  return watch(*api, flags.transfer.transfer_id, {.timeout = *timeout, .json = flags.transfer.json});
}

int transfer_statement_command(const StatementFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto target = account_target(flags.guild, flags.member) + "/statement?format=";
  if (flags.csv) {
    const auto file = api->get_file(target + "csv" + (flags.limit ? fmt::format("&limit={}", *flags.limit) : ""));
    if (!file) return report(file.error());
    fmt::print("{}", file->body);
    // Not among the lines, which go to a file.
    if (file->header("Link")) fmt::print(stderr, "and more: these are the newest\n");
    return kExitDone;
  }
  const auto list =
      read_pages(*api, flags.limit.value_or(kStatementLines), [&](std::size_t limit, const std::string& cursor) {
        return with_cursor(fmt::format("{}json&limit={}", target, limit), cursor);
      });
  if (!list) return report(list.error());
  print_list(*list, flags.json, "no entries", statement_table);
  return kExitDone;
}

int transfer_issue_command(const IssueFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const json::object body{
      {"amount", flags.amount}, {"reason", flags.reason}, {"idempotencyKey", key_or_new(flags.key)}};
  const auto target = fmt::format("{}/{}", account_target(flags.guild, flags.member), flags.verb);
  return show(api->post(target, body, true), flags.json, issue_details);
}

int transfer_audit_command(const TransferAuditFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto audit = api->get("/api/v1/transfers/audit", kAuditTime);
  const auto shown = show(audit, flags.json, audit_lines);
  if (shown != kExitDone) return shown;
  return text_at(*audit, "ok") == "true" ? kExitDone : kExitFailedForGood;
}

}  // namespace fencepost
