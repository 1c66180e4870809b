#include "cli/tx/send.hpp"

#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "cli/amount.hpp"
#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/tx/verbs.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

int send_tx(const TxSendFlags& flags) {
  const auto options = follow_options(flags.wait, flags.timeout, flags.json);
  if (!options) return report(options.error());
  const bool made = flags.request_id.empty();
  const auto request_id = made ? new_request_id() : flags.request_id;
  const auto body = create_body(flags, request_id);
  if (!body) return report(body.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  // Printed before the request is sent, so that a caller who loses the answer can retry without paying twice.
  if (made) print_notice(fmt::format("request id {}: repeat with --request-id to retry safely", request_id));
  const auto tx = api->post("/api/v1/tx", *body, true);
  if (!tx || flags.wait.empty()) return show_tx(tx, flags.json);
  if (!flags.json) fmt::print("transaction {}\n", text_at(*tx, "txId"));
  return follow_on_terminal(*api, text_at(*tx, "txId"), *options, flags.api);
}

}  // namespace

Result<json::value> create_body(const TxSendFlags& flags, const std::string& request_id) {
  json::object payload;
  const auto put_text = [&](const char* name, const std::string& text) {
    if (!text.empty()) payload[name] = text;
  };
  put_text("to", flags.to);
  put_text("data", flags.data);
  put_text("gas", flags.gas);
  struct Amount {
    const char* flag;
    const char* name;
    const std::string& text;
  };
  for (const auto& [flag, name, text] : {Amount{"--value", "value", flags.value},
                                         {"--gas-price", "gasPrice", flags.gas_price},
                                         {"--max-fee", "maxFeePerGas", flags.max_fee},
                                         {"--max-priority-fee", "maxPriorityFeePerGas", flags.max_priority_fee}}) {
    if (text.empty()) continue;
    auto wei = parse_amount(text);
    if (!wei) return fail(std::move(wei.error()).with("flag", flag));
    payload[name] = to_decimal(*wei);
  }
  json::object body{{"signer", flags.signer}, {"requestId", request_id}, {"payload", std::move(payload)}};
  if (flags.chain_id) body["chainId"] = *flags.chain_id;
  if (flags.preflight) body["preflight"] = true;
  return body;
}

void add_tx_send(CLI::App& tx, Run& run) {
  auto [command, flags] = add_verb<TxSendFlags>(tx, run, "send", "Send a transaction, exactly once", send_tx);
  command.add_option("--signer", flags->signer, "Address of the sender, which pays")->required();
  command.add_option("--to", flags->to,
                     "Address of the recipient or contract; if not given, the data creates a contract");
  command.add_option("--value", flags->value, "Amount: 1000 (wei), 30gwei, 1.5ether");
  command.add_option("--data", flags->data, "Call data, in hex with 0x");
  command.add_option("--gas", flags->gas, "Gas limit; estimated if not given");
  command.add_option("--gas-price", flags->gas_price, "Price per gas, for a legacy transaction");
  command.add_option("--max-fee", flags->max_fee, "Maximum total fee per gas");
  command.add_option("--max-priority-fee", flags->max_priority_fee, "Maximum tip (priority fee) per gas");
  command.add_option("--request-id", flags->request_id,
                     "Idempotency key: a retry with the same id sends nothing twice; generated if not given");
  command.add_option("--chain-id", flags->chain_id, "Chain id; required if the node has several chains");
  command.add_flag("--preflight", flags->preflight,
                   "Check on the chain that it would not revert, even if --gas is given");
  auto* wait = command.add_option("--wait", flags->wait, "Wait until the transaction is submitted, mined or confirmed")
                   ->check(CLI::IsMember({"submitted", "mined", "confirmed"}));
  command.add_option("--timeout", flags->timeout, "Stop watching after this time, such as 2m (exit code 4)")
      ->needs(wait);
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

}  // namespace fencepost::cli
