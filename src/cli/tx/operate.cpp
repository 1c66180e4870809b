// `fencepost tx rebroadcast|record-hash|cancel|resend|give-up`: an operator's actions on one transaction.
#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/tx/verbs.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

struct TxOperateFlags {
  TxFlags tx;
  std::string verb;
  std::string tx_hash;  // of record-hash
  std::string reason;
};

int operate_tx(const TxOperateFlags& flags) {
  auto api = connect(flags.tx.api);
  if (!api) return report(api.error());
  boost::json::object body{{"reason", flags.reason}};
  if (!flags.tx_hash.empty()) body["txHash"] = flags.tx_hash;
  return show_tx(api->post(fmt::format("{}/{}", tx_target(flags.tx.tx_id), flags.verb), body, false), flags.tx.json);
}

void add_tx_operation(CLI::App& tx, Run& run, const std::string& name, const std::string& help) {
  TxOperateFlags initial;
  initial.verb = name;
  const auto [command, flags] = add_verb(tx, run, name, help, operate_tx, std::move(initial));
  add_tx_flags(command, flags->tx);
  command.add_option("--reason", flags->reason, "Reason, stored in the audit trail")->required();
  if (name == "record-hash")
    command.add_option("--hash", flags->tx_hash, "Transaction hash: 0x and 64 hex digits")->required();
}

}  // namespace

void add_tx_operate(CLI::App& tx, Run& run) {
  add_tx_operation(tx, run, "rebroadcast", "Broadcast the newest attempt again now (operators)");
  add_tx_operation(tx, run, "record-hash",
                   "Record a transaction hash that was broadcast outside Fencepost (operators)");
  add_tx_operation(
      tx, run, "cancel",
      "Replace the transaction with an empty self-transfer at the same nonce, or end one that has no nonce "
      "yet (operators)");
  add_tx_operation(tx, run, "resend", "Send again what had ended and a reorg has undone (operators)");
  add_tx_operation(tx, run, "give-up",
                   "End a stuck transaction whose nonce was taken by a transaction that cannot be found (operators)");
}

}  // namespace fencepost::cli
