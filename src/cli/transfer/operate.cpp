// `fencepost transfer audit|mint|burn|fail`: for operators.
#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/transfer/verbs.hpp"
#include "cli/transfer/view.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

constexpr auto kAuditTime = std::chrono::minutes(10);  // the audit reads every table of the economy

struct AuditFlags {
  ApiFlags api;
  bool json = false;
};

struct IssueFlags {
  ApiFlags api;
  std::string verb;  // "mint" or "burn"
  std::string guild;
  std::string member;
  std::string amount;
  std::string reason;
  std::string key;  // empty: a new key is generated and printed
  bool json = false;
};

int audit_transfers(const AuditFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto audit = api->get("/api/v1/transfers/audit", kAuditTime);
  const auto shown = show_answer(audit, flags.json, audit_lines);
  if (shown != kExitDone) return shown;
  return text_at(*audit, "ok") == "true" ? kExitDone : kExitFailedForGood;
}

int issue_money(const IssueFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const boost::json::object body{
      {"amount", flags.amount}, {"reason", flags.reason}, {"idempotencyKey", key_or_new(flags.key)}};
  const auto target = fmt::format("{}/{}", account_target(flags.guild, flags.member), flags.verb);
  return show_answer(api->post(target, body, true), flags.json, issue_details);
}

struct FailFlags {
  ApiFlags api;
  std::string transfer_id;
  std::string reason;
  bool json = false;
};

int fail_transfer(const FailFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const boost::json::object body{{"reason", flags.reason}};
  return show_answer(api->post(transfer_target(flags.transfer_id) + "/fail", body, false), flags.json,
                     transfer_details);
}

void add_fail(CLI::App& transfer, Run& run) {
  const auto [command, flags] = add_verb<FailFlags>(
      transfer, run, "fail", "Reject an approved transfer that cannot be completed (operators)", fail_transfer);
  command.add_option("transferId", flags->transfer_id, "Transfer id")->required();
  command.add_option("--reason", flags->reason, "Reason, stored in the audit trail")->required();
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

void add_issue(CLI::App& transfer, Run& run, const std::string& name, const std::string& help) {
  IssueFlags initial;
  initial.verb = name;
  const auto [command, flags] = add_verb(transfer, run, name, help, issue_money, std::move(initial));
  add_number(command, "--guild", flags->guild, "Guild id");
  add_number(command, "--member", flags->member, "Member id of the account");
  add_number(command, "--amount", flags->amount, "Amount");
  command.add_option("--reason", flags->reason, "Reason, stored in the audit trail")->required();
  add_key(command, flags->key);
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

}  // namespace

void add_transfer_operate(CLI::App& transfer, Run& run) {
  const auto audit = add_verb<AuditFlags>(
      transfer, run, "audit",
      "Check that no money was created or lost (exit code 0: correct, 3: not correct; operators)", audit_transfers);
  add_api_flags(audit.command, audit.flags->api);
  add_json_flag(audit.command, audit.flags->json);
  add_issue(transfer, run, "mint", "Create money on a member's account (operators)");
  add_issue(transfer, run, "burn", "Destroy money from a member's account (operators)");
  add_fail(transfer, run);
}

}  // namespace fencepost::cli
