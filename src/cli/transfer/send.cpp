#include "cli/transfer/send.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/transfer/verbs.hpp"
#include "cli/transfer/view.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

int send_transfer(const TransferSendFlags& flags) {
  const auto timeout = read_timeout(flags.timeout);
  if (!timeout) return report(timeout.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  auto body = transfer_body(flags);
  if (!body) return report(body.error());
  (*body)["idempotencyKey"] = key_or_new(flags.key);
  const auto transfer = api->post("/api/v1/transfers", *body, true);
  // A sync transfer is already completed or refused when its answer arrives.
  const bool waits = flags.wait && transfer && text_at(*transfer, "mode") == "pool";
  if (!waits) return show_answer(transfer, flags.json, transfer_details);
  const auto transfer_id = text_at(*transfer, "transferId");
  if (!flags.json) fmt::print("transfer {}\n", transfer_id);
  return follow_on_terminal(*api, transfer_id, TransferFollowOptions{.timeout = *timeout, .json = flags.json},
                            flags.api);
}

}  // namespace

Result<json::object> transfer_body(const TransferSendFlags& flags) {
  json::object body{{"guildId", flags.guild}, {"initiatorId", flags.from}, {"targetId", flags.to}};
  body["amount"] = flags.amount;
  if (!flags.reason.empty()) body["reason"] = flags.reason;
  if (!flags.metadata.empty()) {
    auto metadata = parse_json(flags.metadata, flags.metadata.size());
    if (!metadata || !metadata->is_object()) {
      const auto why = metadata ? std::string("it is no object") : metadata.error().message;
      return fail(invalid("bad_metadata",
                          fmt::format("--metadata: expected a JSON object, got {}: {}", quote(flags.metadata), why)));
    }
    body["metadata"] = std::move(*metadata);
  }
  if (!flags.mode.empty()) body["mode"] = flags.mode;
  if (flags.expires_hours) body["expiresHours"] = *flags.expires_hours;
  if (flags.max_retries) {
    body["maxRetries"] = *flags.max_retries < 0 ? json::value(nullptr) : json::value(*flags.max_retries);
  }
  return body;
}

void add_transfer_send(CLI::App& transfer, Run& run) {
  const auto [command, flags] =
      add_verb<TransferSendFlags>(transfer, run, "send", "Transfer money from one member to another", send_transfer);
  add_number(command, "--guild", flags->guild, "Guild id");
  add_number(command, "--from", flags->from, "Member id of the payer");
  add_number(command, "--to", flags->to, "Member id of the payee");
  add_number(command, "--amount", flags->amount, "Amount");
  command.add_option("--reason", flags->reason, "Reason, shown in the statement");
  command.add_option("--metadata", flags->metadata, "A JSON object of up to 4 KiB, returned with the transfer");
  command
      .add_option("--mode", flags->mode,
                  "sync: completed or refused at once; pool: may wait. Default: the node's setting")
      ->check(CLI::IsMember({"sync", "pool"}));
  command
      .add_option("--expires-hours", flags->expires_hours,
                  "Pool only: reject the transfer if it still waits after this many hours")
      ->check(CLI::Range(1, 8760));
  command
      .add_option("--max-retries", flags->max_retries,
                  "Pool only: reject the transfer after this many failed retries; -1: retry until it expires")
      ->check(CLI::Range(-1, 1000));
  add_key(command, flags->key);
  auto* wait =
      command.add_flag("--wait", flags->wait, "Wait for the result (exit code 0: completed, 3: rejected, 4: timeout)");
  command.add_option("--timeout", flags->timeout, "Stop watching after this time, such as 2m")->needs(wait);
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

}  // namespace fencepost::cli
