#include "cli/cli_tx.hpp"

#include <set>
#include <string>
#include <utility>

#include "cli/cli_parts.hpp"
#include "cli/signer_commands.hpp"
#include "cli/tx_commands.hpp"

namespace fencepost {
namespace {

const std::set<std::string> kGoals{"submitted", "mined", "confirmed"};

void add_tx_flags(CLI::App& command, TxFlags& flags) {
  command.add_option("tx-id", flags.tx_id, "As shown by send and list")->required();
  add_api_flags(command, flags.api);
  add_json_flag(command, flags.json);
}

void add_send(CLI::App& tx, std::function<int()>& run) {
  const auto [command, flags] =
      add_verb<TxSendFlags>(tx, "send", "Have a transaction sent, exactly once", run, tx_send_command);
  command->add_option("--signer", flags->signer, "Who sends and pays")->required();
  command->add_option("--to", flags->to, "Recipient or contract; without it, the data creates a contract");
  command->add_option("--value", flags->value, "Amount: 1000 (wei), 30gwei, 1.5ether");
  command->add_option("--data", flags->data, "Call data, in hex with 0x");
  command->add_option("--gas", flags->gas, "Gas limit; estimated if not given");
  command->add_option("--gas-price", flags->gas_price, "Price per gas, for a legacy transaction");
  command->add_option("--max-fee", flags->max_fee, "Most to pay per gas");
  command->add_option("--max-priority-fee", flags->max_priority_fee, "Tip per gas");
  command->add_option("--request-id", flags->request_id,
                      "Your name for it: asking again under the same name sends nothing twice. Made up if not given");
  command->add_option("--chain-id", flags->chain_id, "Needed when the node has several chains");
  command->add_flag("--preflight", flags->preflight, "Ask the chain whether it would revert, also with --gas");
  auto* wait = command->add_option("--wait", flags->wait, "Watch until it is submitted, mined or confirmed");
  wait->check(CLI::IsMember(kGoals));
  command->add_option("--timeout", flags->timeout, "At most so long, such as 2m; exit code 4 when it is over")
      ->needs(wait);
  add_api_flags(*command, flags->api);
  add_json_flag(*command, flags->json);
}

void add_reading(CLI::App& tx, std::function<int()>& run) {
  const auto [get, get_flags] =
      add_verb<TxFlags>(tx, "get", "Show a transaction and its attempts", run, tx_get_command);
  add_tx_flags(*get, *get_flags);

  const auto [history, history_flags] =
      add_verb<TxFlags>(tx, "history", "Show every step it made: when, by which node, why", run, tx_history_command);
  add_tx_flags(*history, *history_flags);

  const auto [list, list_flags] =
      add_verb<TxListFlags>(tx, "list", "Show transactions, newest first", run, tx_list_command);
  list->add_option("--signer", list_flags->signer, "Only those of this signer");
  list->add_option("--state", list_flags->state, "Only those in this state, such as STUCK");
  list->add_option("--chain-id", list_flags->chain_id, "Only those of this chain");
  list->add_option("--limit", list_flags->limit, "At most so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  add_api_flags(*list, list_flags->api);
  add_json_flag(*list, list_flags->json);

  const auto [watch, watch_flags] = add_verb<TxWatchFlags>(
      tx, "watch", "Follow a transaction to its end (exit code 0: confirmed, 3: failed, 4: not in time)", run,
      tx_watch_command);
  add_tx_flags(*watch, watch_flags->tx);
  watch->add_option("--until", watch_flags->goal, "submitted, mined or confirmed")
      ->capture_default_str()
      ->check(CLI::IsMember(kGoals));
  watch->add_option("--timeout", watch_flags->timeout, "At most so long, such as 2m");
}

void add_operating(CLI::App& tx, std::function<int()>& run) {
  struct Verb {
    const char* name;
    const char* help;
  };
  for (const auto& [verb, help] : {Verb{"rebroadcast", "Send its newest attempt again, now (operators)"},
                                   {"record-hash", "Tell that it was sent elsewhere under this hash (operators)"},
                                   {"cancel", "Outbid it by nothing at the same nonce (operators)"}}) {
    TxActFlags initial;
    initial.verb = verb;
    const auto [command, flags] = add_verb<TxActFlags>(tx, verb, help, run, tx_act_command, std::move(initial));
    add_tx_flags(*command, flags->tx);
    command->add_option("--reason", flags->reason, "Why, for the record")->required();
    if (flags->verb == "record-hash") command->add_option("--hash", flags->tx_hash, "0x and 64 digits")->required();
  }
}

void add_keystore_flags(CLI::App& command, KeystoreFlags& flags) {
  command.add_option("-c,--config", flags.config_file, "Configuration file (also FENCEPOST_CONFIG)");
  command.add_option("--keystore-dir", flags.directory, "Directory of key files, in place of keystore.directory");
}

void add_password_flag(CLI::App& command, KeystoreFlags& flags) {
  command.add_option("--password-file", flags.password_file,
                     "File with the password (also FENCEPOST_KEYSTORE_PASSWORD); asked for if not given");
}

void add_key_files(CLI::App& signer, std::function<int()>& run) {
  const auto [make, make_flags] =
      add_verb<SignerNewFlags>(signer, "new", "Make a key and keep it in a key file", run, signer_new_command);
  add_keystore_flags(*make, make_flags->keystore);
  add_password_flag(*make, make_flags->keystore);
  add_json_flag(*make, make_flags->json);

  const auto [import, import_flags] =
      add_verb<SignerImportFlags>(signer, "import", "Keep a key you have in a key file; it is read from standard input",
                                  run, signer_import_command);
  add_keystore_flags(*import, import_flags->keystore);
  add_password_flag(*import, import_flags->keystore);
  auto* hex = import->add_option("--key-file", import_flags->key_file, "File with the private key in hex");
  auto* keystore = import->add_option("--from-keystore", import_flags->from_keystore, "Key file to take it from");
  keystore->excludes(hex);
  import->add_option("--from-password-file", import_flags->from_password_file, "File with the password of that")
      ->needs(keystore);
  add_json_flag(*import, import_flags->json);

  const auto [list, list_flags] = add_verb<SignerListFlags>(
      signer, "list", "Show the key files here, or a node's signers", run, signer_list_command);
  add_keystore_flags(*list, list_flags->keystore);
  list->add_flag("--api", list_flags->from_api, "Ask a node: who leads them, nonces, open transactions");
  add_api_flags(*list, list_flags->api);
  add_json_flag(*list, list_flags->json);
}

void add_signer_operating(CLI::App& signer, std::function<int()>& run) {
  struct Verb {
    const char* name;
    const char* help;
  };
  for (const auto& [verb, help] :
       {Verb{"fill-nonce", "Close a gap by sending nothing at that nonce (operators)"},
        {"accept-reconcile", "Accept that the chain's nonce is right, and go on from there (operators)"}}) {
    SignerActFlags initial;
    initial.verb = verb;
    const auto [command, flags] =
        add_verb<SignerActFlags>(signer, verb, help, run, signer_act_command, std::move(initial));
    command->add_option("address", flags->signer, "Of the signer")->required();
    command->add_option("--chain-id", flags->chain_id, "Needed when the node has several chains");
    command->add_option("--reason", flags->reason, "Why, for the record")->required();
    if (flags->verb == "fill-nonce") command->add_option("--nonce", flags->nonce, "The missing one")->required();
    add_api_flags(*command, flags->api);
    add_json_flag(*command, flags->json);
  }
}

}  // namespace

void add_tx_commands(CLI::App& app, std::function<int()>& run) {
  auto* tx = app.add_subcommand("tx", "Send transactions, follow them, and mend what is stuck");
  tx->require_subcommand(1);
  add_send(*tx, run);
  add_reading(*tx, run);
  add_operating(*tx, run);
}

void add_signer_commands(CLI::App& app, std::function<int()>& run) {
  auto* signer = app.add_subcommand("signer", "Make, import and list signing keys, and mend a signer's nonces");
  signer->require_subcommand(1);
  add_key_files(*signer, run);
  add_signer_operating(*signer, run);
}

}  // namespace fencepost
