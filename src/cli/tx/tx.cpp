// `fencepost tx …`: transactions of the transaction manager, through the API.
#include <fmt/format.h>

#include "http/uri.hpp"

#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/tx/verbs.hpp"
#include "cli/tx/view.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {

void add_tx(CLI::App& noun, Run& run) {
  noun.require_subcommand(1);
  add_tx_send(noun, run);
  add_tx_show(noun, run);
  add_tx_watch(noun, run);
  add_tx_operate(noun, run);
}

void add_tx_flags(CLI::App& command, TxFlags& flags) {
  command.add_option("tx-id", flags.tx_id, "Id of the transaction, as shown by send and list")->required();
  add_api_flags(command, flags.api);
  add_json_flag(command, flags.json);
}

std::string tx_target(const std::string& tx_id) {
  return "/api/v1/tx/" + http::percent_encode(tx_id);
}

int show_tx(const Result<boost::json::value>& answer, bool as_json) {
  return show_answer(answer, as_json, tx_details);
}

}  // namespace fencepost::cli
