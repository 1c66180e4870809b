#include "cli/cli_transfer.hpp"

#include <charconv>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/cli_parts.hpp"
#include "cli/transfer_commands.hpp"

namespace fencepost {
namespace {

const std::set<std::string> kModes{"sync", "pool"};
constexpr std::size_t kMostItems = 10'000;

// Decimal digits of 64 bits, without sign or leading zeros: CLI11 itself would read 010 as 8.
CLI::Validator whole_number(std::int64_t min) {
  const auto check = [min](const std::string& text) -> std::string {
    std::int64_t number = 0;
    const auto* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    const bool whole = read.ec == std::errc{} && read.ptr == end && std::to_string(number) == text;
    if (whole && number >= min) return "";
    return fmt::format("expected a whole number from {} to {}, got '{}'", min, std::numeric_limits<std::int64_t>::max(),
                       text);
  };
  return {check, "NUMBER", "whole_number"};
}

void add_number(CLI::App& command, const std::string& name, std::string& value, const std::string& help,
                std::int64_t min = 1) {
  command.add_option(name, value, help)->required()->check(whole_number(min));
}

template <class Limit>
CLI::Option* add_limit(CLI::App& command, Limit& limit) {
  return command.add_option("--limit", limit, "At most so many")->check(CLI::Range(std::size_t{1}, kMostItems));
}

void add_key(CLI::App& command, std::string& key) {
  command.add_option("--key", key,
                     "Your name for it: asking again under the same name moves nothing twice. Made up if not given");
}

void add_transfer_flags(CLI::App& command, TransferFlags& flags) {
  command.add_option("transfer-id", flags.transfer_id, "As shown by send and list")->required();
  add_api_flags(command, flags.api);
  add_json_flag(command, flags.json);
}

void add_send(CLI::App& transfer, std::function<int()>& run) {
  const auto [command, flags] =
      add_verb<TransferSendFlags>(transfer, "send", "Have one member pay another", run, transfer_send_command);
  add_number(*command, "--guild", flags->guild, "In which guild");
  add_number(*command, "--from", flags->from, "The member who pays");
  add_number(*command, "--to", flags->to, "The member who is paid");
  add_number(*command, "--amount", flags->amount, "How much");
  command->add_option("--reason", flags->reason, "Why, for the statement");
  command->add_option("--mode", flags->mode, "sync: at once or not at all; pool: may wait. Default: as the node is set")
      ->check(CLI::IsMember(kModes));
  command->add_option("--expires-hours", flags->expires_hours, "Of the pool: rejected when it still waits by then")
      ->check(CLI::Range(1, 8760));
  add_key(*command, flags->key);
  auto* wait = command->add_flag("--wait", flags->wait,
                                 "Watch until it is over (exit code 0: completed, 3: rejected, 4: not in time)");
  command->add_option("--timeout", flags->timeout, "At most so long, such as 2m")->needs(wait);
  add_api_flags(*command, flags->api);
  add_json_flag(*command, flags->json);
}

void add_one(CLI::App& transfer, std::function<int()>& run) {
  const auto [get, get_flags] =
      add_verb<TransferFlags>(transfer, "get", "Show a transfer, of either mode", run, transfer_get_command);
  add_transfer_flags(*get, *get_flags);

  const auto [watch, watch_flags] = add_verb<TransferWatchFlags>(
      transfer, "watch", "Follow a transfer to its end (exit code 0: completed, 3: rejected, 4: not in time)", run,
      transfer_watch_command);
  add_transfer_flags(*watch, watch_flags->transfer);
  watch->add_option("--timeout", watch_flags->timeout, "At most so long, such as 2m");

  const auto [cancel, cancel_flags] = add_verb<TransferFlags>(
      transfer, "cancel", "Reject a transfer that is not approved yet", run, transfer_cancel_command);
  add_transfer_flags(*cancel, *cancel_flags);
}

void add_many(CLI::App& transfer, std::function<int()>& run) {
  const auto [list, list_flags] =
      add_verb<TransferListFlags>(transfer, "list", "Show a guild's pool, newest first", run, transfer_list_command);
  add_number(*list, "--guild", list_flags->guild, "Of which guild");
  list->add_option("--status", list_flags->status, "Only those in this status, such as checking");
  add_limit(*list, list_flags->limit)->capture_default_str();
  add_api_flags(*list, list_flags->api);
  add_json_flag(*list, list_flags->json);

  const auto [statement, statement_flags] = add_verb<StatementFlags>(
      transfer, "statement", "Show what came and went on an account, newest first", run, transfer_statement_command);
  add_number(*statement, "--guild", statement_flags->guild, "In which guild");
  add_number(*statement, "--member", statement_flags->member, "Whose account; 0 is the guild's own", 0);
  add_limit(*statement, statement_flags->limit);
  auto* csv = statement->add_flag("--csv", statement_flags->csv, "As a file for a spreadsheet");
  add_api_flags(*statement, statement_flags->api);
  statement->add_flag("--json", statement_flags->json, "For scripts")->excludes(csv);
}

void add_operating(CLI::App& transfer, std::function<int()>& run) {
  const auto [audit, audit_flags] = add_verb<TransferAuditFlags>(
      transfer, "audit", "Prove that no money was made or lost (exit code 0: it holds, 3: it does not; operators)", run,
      transfer_audit_command);
  add_api_flags(*audit, audit_flags->api);
  add_json_flag(*audit, audit_flags->json);

  for (const auto& [verb, help] : {std::pair{"mint", "Make money, for a member (operators)"},
                                   {"burn", "Take money from a member, out of the world (operators)"}}) {
    IssueFlags initial;
    initial.verb = verb;
    const auto [command, flags] =
        add_verb<IssueFlags>(transfer, verb, help, run, transfer_issue_command, std::move(initial));
    add_number(*command, "--guild", flags->guild, "In which guild");
    add_number(*command, "--member", flags->member, "Whose account");
    add_number(*command, "--amount", flags->amount, "How much");
    command->add_option("--reason", flags->reason, "Why, for the record")->required();
    add_key(*command, flags->key);
    add_api_flags(*command, flags->api);
    add_json_flag(*command, flags->json);
  }
}

}  // namespace

void add_transfer_commands(CLI::App& app, std::function<int()>& run) {
  auto* transfer = app.add_subcommand("transfer", "Have members pay each other, follow it, and audit the money");
  transfer->require_subcommand(1);
  add_send(*transfer, run);
  add_one(*transfer, run);
  add_many(*transfer, run);
  add_operating(*transfer, run);
}

}  // namespace fencepost
