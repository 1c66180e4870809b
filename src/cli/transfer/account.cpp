#include "cli/transfer/account.hpp"

#include <chrono>

#include <fmt/format.h>

#include "base/duration_text.hpp"
#include "http/uri.hpp"

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/text_table.hpp"
#include "cli/transfer/verbs.hpp"
#include "cli/transfer/view.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr auto kNone = "none";

struct BalanceFlags {
  ApiFlags api;
  std::string guild;
  std::string member;
  bool json = false;
};

struct KindFlags {
  ApiFlags api;
  std::string kind;
  std::string guild;
  std::string member;
  std::string reason;
  bool json = false;
};

Result<std::int64_t> seconds_of(const std::string& text) {
  const bool number = text.find_first_not_of("0123456789") == std::string::npos;
  const auto duration = parse_duration(number ? text + "s" : text);
  if (!duration || *duration % std::chrono::seconds(1) != std::chrono::milliseconds(0)) {
    return fail(invalid("bad_cooldown", fmt::format("--cooldown: expected whole seconds, such as 300 or 5m, got '{}'",
                                                    printable(text))));
  }
  return std::chrono::duration_cast<std::chrono::seconds>(*duration).count();
}

int show_balance(const BalanceFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  return show_answer(api->get(account_target(flags.guild, flags.member)), flags.json, account_details);
}

int show_or_change_settings(const GuildSettingsFlags& flags) {
  const auto change = settings_change(flags);
  if (!change) return report(change.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto target = fmt::format("/api/v1/guilds/{}/settings", http::percent_encode(flags.guild));
  return show_answer(change->empty() ? api->get(target) : api->patch(target, *change), flags.json, settings_details);
}

int set_kind(const KindFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const json::object body{{"kind", flags.kind}, {"reason", flags.reason}};
  return show_answer(api->put(account_target(flags.guild, flags.member) + "/kind", body), flags.json, account_details);
}

void add_settings(CLI::App& transfer, Run& run) {
  const auto [command, flags] = add_verb<GuildSettingsFlags>(
      transfer, run, "settings", "Show a guild's settings, or change them (operators)", show_or_change_settings);
  add_number(command, "--guild", flags->guild, "Guild id");
  const auto number_or_none = [](std::int64_t min) { return CLI::IsMember({kNone}) | whole_number(min); };
  command
      .add_option("--daily-limit", flags->daily_limit, "The most that a member may transfer in a UTC day, or 'none'")
      ->check(number_or_none(0));
  command.add_option("--cooldown", flags->cooldown,
                     "Time from one transfer of a member to the next: 300 (seconds), 5m; 0: none");
  command
      .add_option("--expiry-hours", flags->expiry_hours,
                  "Pool transfers are rejected after waiting this many hours, unless they say otherwise")
      ->check(whole_number(1));
  command
      .add_option("--max-retries", flags->max_retries,
                  "Failed retries before a pool transfer is rejected, or 'none': until it expires")
      ->check(number_or_none(0));
  command.add_option("--reason", flags->reason, "Reason of a change, stored in the audit trail; required for changes");
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

void add_kind(CLI::App& transfer, Run& run) {
  const auto [command, flags] = add_verb<KindFlags>(
      transfer, run, "kind", "Make an account a member's, or a government's without limits (operators)", set_kind);
  command.add_option("kind", flags->kind, "member or government")
      ->required()
      ->check(CLI::IsMember({"member", "government"}));
  add_number(command, "--guild", flags->guild, "Guild id");
  add_number(command, "--member", flags->member, "Member id of the account");
  command.add_option("--reason", flags->reason, "Reason, stored in the audit trail")->required();
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

}  // namespace

Result<json::object> settings_change(const GuildSettingsFlags& flags) {
  json::object change;
  if (!flags.daily_limit.empty()) {
    change["dailyLimit"] = flags.daily_limit == kNone ? json::value(nullptr) : json::value(flags.daily_limit);
  }
  if (!flags.cooldown.empty()) {
    const auto seconds = seconds_of(flags.cooldown);
    if (!seconds) return fail(seconds.error());
    change["cooldownSeconds"] = *seconds;
  }
  if (!flags.expiry_hours.empty()) change["defaultExpiryHours"] = std::stoll(flags.expiry_hours);
  if (!flags.max_retries.empty()) {
    const bool none = flags.max_retries == kNone;
    change["maxRetries"] = none ? json::value(nullptr) : json::value(std::stoll(flags.max_retries));
  }
  if (change.empty() && !flags.reason.empty()) {
    return fail(invalid("nothing_to_change",
                        "--reason is given, but no setting: give --daily-limit, --cooldown, "
                        "--expiry-hours or --max-retries"));
  }
  if (!change.empty() && flags.reason.empty()) {
    return fail(invalid("reason_required", "a change needs --reason, which is stored in the audit trail"));
  }
  if (!change.empty()) change["reason"] = flags.reason;
  return change;
}

void add_transfer_account(CLI::App& transfer, Run& run) {
  const auto balance =
      add_verb<BalanceFlags>(transfer, run, "balance", "Show an account: balance, limits and cooldown", show_balance);
  add_number(balance.command, "--guild", balance.flags->guild, "Guild id");
  add_number(balance.command, "--member", balance.flags->member,
             "Member id of the account; 0 is the guild's own account", 0);
  add_api_flags(balance.command, balance.flags->api);
  add_json_flag(balance.command, balance.flags->json);
  add_settings(transfer, run);
  add_kind(transfer, run);
}

}  // namespace fencepost::cli
