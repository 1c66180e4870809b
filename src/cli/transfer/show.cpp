#include "cli/transfer/show.hpp"

#include <optional>

#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "http/uri.hpp"

#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/transfer/verbs.hpp"
#include "cli/transfer/view.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

constexpr std::size_t kStatementLines = 50;

struct TransferFlags {
  ApiFlags api;
  std::string transfer_id;
  bool json = false;
};

struct TransferWatchFlags {
  TransferFlags transfer;
  std::string timeout;
};

struct StatementFlags {
  ApiFlags api;
  std::string guild;
  std::string member;
  PageFlags page{.limit = 0};  // 0: 50, or for CSV the API's default
  bool csv = false;
  bool json = false;
};

std::string with_cursor(std::string target, const std::string& cursor) {
  return cursor.empty() ? target : fmt::format("{}&cursor={}", target, http::percent_encode(cursor));
}

int get_transfer(const TransferFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  return show_answer(api->get(transfer_target(flags.transfer_id)), flags.json, transfer_details);
}

int watch_transfer(const TransferWatchFlags& flags) {
  const auto timeout = read_timeout(flags.timeout);
  if (!timeout) return report(timeout.error());
  auto api = connect(flags.transfer.api);
  if (!api) return report(api.error());
  const TransferFollowOptions options{.timeout = *timeout, .json = flags.transfer.json};
  return follow_on_terminal(*api, flags.transfer.transfer_id, options, flags.transfer.api);
}

int cancel_transfer(const TransferFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto cancelled = api->post(transfer_target(flags.transfer_id) + "/cancel", boost::json::object{}, false);
  return show_answer(cancelled, flags.json, transfer_details);
}

int list_transfers(const TransferListFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto list = read_pages(*api, flags.page, [&](std::size_t limit, const std::string& cursor) {
    return transfer_list_target(flags, limit, cursor);
  });
  if (!list) return report(list.error());
  print_list(*list, flags.json, "no transfers", transfer_table);
  return kExitDone;
}

// The cursor of the next page, from the answer's header Link; empty: it was the last page.
std::string next_csv_cursor(const http::ClientResponse& page) {
  constexpr std::string_view kName = "cursor=";
  const auto link = page.header("Link").value_or("");
  const auto at = link.find(kName);
  if (at == std::string::npos) return "";
  const auto begin = at + kName.size();
  return std::string(link.substr(begin, link.find_first_of("&>", begin) - begin));
}

int print_csv(ApiClient& api, const std::string& target, const PageFlags& page) {
  auto cursor = page.cursor;
  for (bool first = true;; first = false) {
    const auto limit = page.limit == 0 ? "" : fmt::format("&limit={}", page.limit);
    const auto file = api.get_file(with_cursor(target + limit, cursor));
    if (!file) return report(file.error());
    const auto line_end = file->body.find('\n');
    const auto header = first || line_end == std::string::npos ? 0 : line_end + 1;  // once, at the top
    fmt::print("{}", std::string_view(file->body).substr(header));
    cursor = next_csv_cursor(*file);
    if (cursor.empty()) return kExitDone;
    if (page.all) continue;
    // On stderr: stdout often goes to a file.
    print_notice(fmt::format("there are more entries, these are the newest: give --all, or go on with --cursor {}",
                             printable(cursor)));
    return kExitDone;
  }
}

int show_statement(const StatementFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto target = account_target(flags.guild, flags.member) + "/statement?format=";
  if (flags.csv) return print_csv(*api, target + "csv", flags.page);
  auto page = flags.page;
  if (page.limit == 0) page.limit = kStatementLines;
  const auto list = read_pages(*api, page, [&](std::size_t limit, const std::string& cursor) {
    return with_cursor(fmt::format("{}json&limit={}", target, limit), cursor);
  });
  if (!list) return report(list.error());
  print_list(*list, flags.json, "no entries", statement_table);
  return kExitDone;
}

void add_transfer_flags(CLI::App& command, TransferFlags& flags) {
  command.add_option("transfer-id", flags.transfer_id, "Id of the transfer, as shown by send and list")->required();
  add_api_flags(command, flags.api);
  add_json_flag(command, flags.json);
}

void add_transfer_list(CLI::App& transfer, Run& run) {
  const auto [command, flags] =
      add_verb<TransferListFlags>(transfer, run, "list", "Show a guild's pool transfers, newest first", list_transfers);
  add_number(command, "--guild", flags->guild, "Guild id");
  command.add_option("--status", flags->status, "Only transfers in this status, such as checking");
  add_page_flags(command, flags->page);
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

void add_statement(CLI::App& transfer, Run& run) {
  const auto [command, flags] = add_verb<StatementFlags>(
      transfer, run, "statement", "Show the entries of an account, newest first", show_statement);
  add_number(command, "--guild", flags->guild, "Guild id");
  add_number(command, "--member", flags->member, "Member id of the account; 0 is the guild's own account", 0);
  add_page_flags(command, flags->page);
  command.get_option("--limit")->default_str("");
  auto* csv = command.add_flag("--csv", flags->csv, "Print CSV, for a spreadsheet");
  add_api_flags(command, flags->api);
  command.add_flag("--json", flags->json, "Print JSON, for scripts")->excludes(csv);
}

}  // namespace

std::string transfer_list_target(const TransferListFlags& flags, std::size_t limit, const std::string& cursor) {
  auto target = fmt::format("/api/v1/transfers?guildId={}&limit={}", http::percent_encode(flags.guild), limit);
  if (!flags.status.empty()) target += "&status=" + http::percent_encode(flags.status);
  return with_cursor(std::move(target), cursor);
}

void add_transfer_show(CLI::App& transfer, Run& run) {
  const auto get = add_verb<TransferFlags>(transfer, run, "get", "Show a transfer of either mode", get_transfer);
  add_transfer_flags(get.command, *get.flags);

  const auto watch = add_verb<TransferWatchFlags>(
      transfer, run, "watch", "Follow a transfer to its end (exit code 0: completed, 3: rejected, 4: timeout)",
      watch_transfer);
  add_transfer_flags(watch.command, watch.flags->transfer);
  watch.command.add_option("--timeout", watch.flags->timeout, "Stop watching after this time, such as 2m");

  const auto cancel =
      add_verb<TransferFlags>(transfer, run, "cancel", "Reject a transfer that is not approved yet", cancel_transfer);
  add_transfer_flags(cancel.command, *cancel.flags);

  add_transfer_list(transfer, run);
  add_statement(transfer, run);
}

}  // namespace fencepost::cli
