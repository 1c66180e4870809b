#include "cli/signer.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/uint256.hpp"
#include "evm/address.hpp"
#include "evm/keys/keystore_file.hpp"
#include "evm/keys/private_key.hpp"

#include "cli/amount.hpp"
#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/program_name.hpp"
#include "cli/prompt.hpp"
#include "cli/text_table.hpp"
#include "cli/tx/view.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// The directory of the key files and their password. Either may come from the configuration instead
// (`keystore.directory`, `keystore.password`, FENCEPOST_KEYSTORE_PASSWORD); a missing password is asked for.
struct KeystoreFlags {
  std::string config_file;
  std::string directory;
  std::string password_file;
};

struct SignerNewFlags {
  KeystoreFlags keystore;
  bool json = false;
};

struct SignerImportFlags {
  KeystoreFlags keystore;
  std::string key_file = "-";      // a private key in hex; "-": standard input
  std::string from_keystore;       // or the key file to import from
  std::string from_password_file;  // the password of that key file; empty: asked for
  bool json = false;
};

struct SignerListFlags {
  KeystoreFlags keystore;
  ApiFlags api;
  bool from_api = false;  // list the signers of a node even if there is a keystore directory
  bool json = false;
};

struct SignerOperateFlags {
  ApiFlags api;
  std::string verb;  // "fill-nonce", "accept-reconcile" or "reset-cursor"
  std::string signer;
  std::optional<std::int64_t> chain_id;
  std::optional<std::int64_t> nonce;       // of fill-nonce
  std::optional<std::int64_t> next_nonce;  // of reset-cursor
  std::string reason;
  bool json = false;
};

// The directory (empty if none is given) and the password, if there is one.
Result<KeystoreConfig> find_keystore(const KeystoreFlags& flags) {
  ConfigFlags config;
  config.config_file = flags.config_file;
  if (!flags.directory.empty()) {
    config.overrides.push_back({"--keystore-dir", "keystore.directory", flags.directory});
  }
  if (!flags.password_file.empty()) {
    config.overrides.push_back({"--password-file", "keystore.password_file", flags.password_file});
  }
  auto loaded = load(config, {});
  if (!loaded) return fail(loaded.error());
  print_warnings(*loaded);
  return std::move(loaded->keystore);
}

Result<KeystoreConfig> keystore_of(const KeystoreFlags& flags) {
  auto keystore = find_keystore(flags);
  if (keystore && keystore->directory.empty()) {
    return fail(
        invalid("no_keystore", "no directory of key files is given: give --keystore-dir, or set keystore.directory"));
  }
  return keystore;
}

// Asks twice: a mistyped password would lose the key.
Result<Secret> ask_new_password() {
  auto password = ask_secret("Password for the key file");
  if (!password && password.error().code == "no_terminal") {
    return fail(
        invalid("no_password", "no password is given: give --password-file, or set FENCEPOST_KEYSTORE_PASSWORD"));
  }
  if (!password) return password;
  const auto again = ask_secret("Repeat the password");
  if (!again) return again;
  if (*again != *password) return fail(invalid("password_differs", "the two passwords differ: try again"));
  return password;
}

int write_key(const evm::PrivateKey& key, const KeystoreConfig& keystore, bool as_json) {
  SystemClock clock;
  SystemRandom random;
  auto password = keystore.password.empty() ? ask_new_password() : Result<Secret>(keystore.password);
  if (!password) return report(password.error());
  if (!as_json && ::isatty(STDERR_FILENO) == 1) fmt::print(stderr, "· encrypting the key …\n");
  const auto file = evm::write_keystore(keystore.directory, key, *password, clock, random);
  if (!file) return report(file.error());
  const auto address = evm::checksum_address(evm::address_text(key.address()));
  if (as_json) {
    fmt::print("{}\n", json::serialize(json::object{{"address", address}, {"file", file->string()}}));
  } else {
    fmt::print(
        "address  {}\nfile     {}\n\nA node uses the key from its next start on. Back up the file and the "
        "password: without both, the funds of the address are lost.\n",
        address, file->string());
  }
  return kExitDone;
}

Result<evm::PrivateKey> key_from_keystore(const SignerImportFlags& flags) {
  auto password = flags.from_password_file.empty() ? ask_secret("Password of the key file to import")
                                                   : read_secret_line(flags.from_password_file);
  if (!password) return fail(password.error());
  return evm::read_keystore(flags.from_keystore, *password);
}

Result<evm::PrivateKey> key_from_hex(const SignerImportFlags& flags) {
  const bool by_hand = flags.key_file == "-" && ::isatty(STDIN_FILENO) == 1;
  const auto hex = by_hand ? ask_secret("Private key, in hex") : read_secret_line(flags.key_file);
  if (!hex) return fail(hex.error());
  return evm::PrivateKey::from_hex(*hex);
}

struct KeyFile {
  fs::path file;
  std::string address;  // empty: the file does not say
  std::string problem;
};

// Reads no secret and needs no password: only the public part of the file.
KeyFile look_into(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(evm::kMaxKeystoreBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  const auto keystore = evm::parse_keystore(text);
  if (!keystore) return {file, "", keystore.error().message};
  return {file, keystore->address ? evm::checksum_address(*keystore->address) : "", ""};
}

int list_files(const std::string& directory, bool as_json) {
  const auto files = evm::keystore_files(directory);
  if (!files) return report(files.error());
  TextTable table({"ADDRESS", {"FILE", 1, 20}, {"PROBLEM", 0, 20}});
  json::array items;
  for (const auto& file : *files) {
    const auto key = look_into(file);
    table.add({key.address.empty() ? "not stated" : key.address, file.filename().string(), key.problem});
    items.push_back({{"address", key.address.empty() ? json::value(nullptr) : json::value(key.address)},
                     {"file", file.string()},
                     {"problem", key.problem.empty() ? json::value(nullptr) : json::value(key.problem)}});
  }
  if (as_json) {
    print_json(json_list(std::move(items)));
  } else if (table.empty()) {
    fmt::print("no keys in {}: {} signer new\n", directory, program_name());
  } else {
    fmt::print("{}", table.text(terminal_columns()));
  }
  return kExitDone;
}

int list_from_api(const SignerListFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  return show_answer(api->get("/api/v1/signers?balances=true"), flags.json,
                     [](const json::value& answer, std::size_t width) {
                       const auto& signers = items_of(answer);
                       return signers.empty() ? "no signers\n" : signer_table(signers, width);
                     });
}

int make_signer(const SignerNewFlags& flags) {
  const auto keystore = keystore_of(flags.keystore);
  if (!keystore) return report(keystore.error());
  SystemRandom random;
  return write_key(evm::PrivateKey::generate(random), *keystore, flags.json);
}

int import_signer(const SignerImportFlags& flags) {
  const auto keystore = keystore_of(flags.keystore);
  if (!keystore) return report(keystore.error());
  const auto key = flags.from_keystore.empty() ? key_from_hex(flags) : key_from_keystore(flags);
  if (!key) return report(key.error());
  return write_key(*key, *keystore, flags.json);
}

int list_signers(const SignerListFlags& flags) {
  const auto& [url, api_key, data_dir] = flags.api;
  const bool names_node = !url.empty() || !api_key.empty() || !data_dir.empty();
  if (flags.from_api || (names_node && flags.keystore.directory.empty())) return list_from_api(flags);
  const auto keystore = find_keystore(flags.keystore);
  if (!keystore) return report(keystore.error());
  return keystore->directory.empty() ? list_from_api(flags) : list_files(keystore->directory, flags.json);
}

// "?" if the chain did not answer; empty if the node is too old to report balances.
std::string balance_text(const json::value& signer) {
  const auto* object = signer.if_object();
  if (object == nullptr || !object->contains("balance")) return "";
  const auto wei = parse_uint256(text_at(signer, "balance"));
  return wei ? amount_text(*wei) : "?";
}

// The transaction that fills the gap, or the nonce from which numbering continues.
std::string operation_text(const json::value& answer, std::size_t width) {
  if (!text_at(answer, "txId").empty()) return tx_details(answer, width);
  auto text = fmt::format("{} on chain {}: the next nonce is {}\n", text_at(answer, "signer"),
                          text_at(answer, "chainId"), text_at(answer, "nextNonce"));
  if (const auto given_up = text_at(answer, "givenUp"); !given_up.empty()) {
    text += fmt::format("{} nonces released, {} open transactions given up\n", text_at(answer, "released"), given_up);
  }
  return text;
}

int operate_signer(const SignerOperateFlags& flags) {
  const auto signer = evm::parse_address(flags.signer);
  if (!signer) return report(signer.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  json::object body{{"reason", flags.reason}};
  if (flags.chain_id) body["chainId"] = *flags.chain_id;
  if (flags.nonce) body["nonce"] = *flags.nonce;
  if (flags.next_nonce) body["nextNonce"] = *flags.next_nonce;
  const auto target = fmt::format("/api/v1/signers/{}/{}", *signer, flags.verb);
  return show_answer(api->post(target, body, false), flags.json, operation_text);
}

void add_keystore_flags(CLI::App& command, KeystoreFlags& flags) {
  command.add_option("-c,--config", flags.config_file, "Configuration file (also FENCEPOST_CONFIG)");
  command.add_option("--keystore-dir", flags.directory, "Directory of key files, in place of keystore.directory");
}

void add_password_flag(CLI::App& command, KeystoreFlags& flags) {
  command.add_option("--password-file", flags.password_file,
                     "File with the password (also FENCEPOST_KEYSTORE_PASSWORD); prompted for if not given");
}

void add_signer_new(CLI::App& signer, Run& run) {
  const auto [command, flags] =
      add_verb<SignerNewFlags>(signer, run, "new", "Create a key and store it in a key file", make_signer);
  add_keystore_flags(command, flags->keystore);
  add_password_flag(command, flags->keystore);
  add_json_flag(command, flags->json);
}

void add_signer_import(CLI::App& signer, Run& run) {
  const auto [command, flags] = add_verb<SignerImportFlags>(
      signer, run, "import", "Store an existing private key, read from standard input, in a key file", import_signer);
  add_keystore_flags(command, flags->keystore);
  add_password_flag(command, flags->keystore);
  auto* hex = command.add_option("--key-file", flags->key_file, "File with the private key in hex");
  auto* keystore = command.add_option("--from-keystore", flags->from_keystore, "Key file to import the key from");
  keystore->excludes(hex);
  command
      .add_option("--from-password-file", flags->from_password_file,
                  "File with the password of the --from-keystore file")
      ->needs(keystore);
  add_json_flag(command, flags->json);
}

void add_signer_list(CLI::App& signer, Run& run) {
  const auto [command, flags] = add_verb<SignerListFlags>(
      signer, run, "list", "Show a node's signers, or the files of a keystore directory", list_signers);
  add_keystore_flags(command, flags->keystore);
  command.add_flag("--api", flags->from_api, "Show a node's signers even if keystore.directory is set");
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

void add_signer_operation(CLI::App& signer, Run& run, const std::string& name, const std::string& help) {
  SignerOperateFlags initial;
  initial.verb = name;
  const auto [command, flags] = add_verb(signer, run, name, help, operate_signer, std::move(initial));
  command.add_option("address", flags->signer, "Address of the signer")->required();
  command.add_option("--chain-id", flags->chain_id, "Chain id; required if the node has several chains");
  command.add_option("--reason", flags->reason, "Reason, stored in the audit trail")->required();
  if (name == "fill-nonce") command.add_option("--nonce", flags->nonce, "The missing nonce")->required();
  if (name == "reset-cursor") command.add_option("--next", flags->next_nonce, "The next nonce")->required();
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

}  // namespace

std::string signer_table(const json::array& signers, std::size_t width) {
  TextTable table({"SIGNER",
                   {"CHAIN", 1},
                   {"LEADER", 5, 12},
                   {"TOKEN", 7},
                   {"NEXT", 4},
                   {"ON CHAIN", 6},
                   {"BALANCE", 2},
                   {"OPEN", 3, 12},
                   {"OLDEST OPEN (UTC)", 8},
                   {"", 0, 15}});
  for (const auto& signer : signers) {
    std::string counts;
    if (const auto* by_state = find_at(signer, "counts"); by_state != nullptr && by_state->is_object()) {
      for (const auto& [state, count] : by_state->get_object()) {
        counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", json::serialize(count), std::string_view(state));
      }
    }
    const auto reason = text_at(signer, "reconcileReason");
    const bool reconcile = text_at(signer, "needsReconcile") == "true";
    table.add({text_at(signer, "signer"), text_at(signer, "chainId"), text_at(signer, "leader"),
               text_at(signer, "fencingToken"), text_at(signer, "nextNonce"), text_at(signer, "chainNonce"),
               balance_text(signer), counts, when(signer, "oldestOpen"),
               !reconcile       ? ""
               : reason.empty() ? "NEEDS RECONCILE"
                                : "NEEDS RECONCILE: " + reason});
  }
  return table.text(width);
}

void add_signer(CLI::App& noun, Run& run) {
  noun.require_subcommand(1);
  add_signer_new(noun, run);
  add_signer_import(noun, run);
  add_signer_list(noun, run);
  add_signer_operation(noun, run, "fill-nonce",
                       "Fill a nonce gap with an empty self-transfer at that nonce (operators)");
  add_signer_operation(noun, run, "accept-reconcile",
                       "Accept the chain's nonce as correct and continue from it (operators)");
  add_signer_operation(
      noun, run, "reset-cursor",
      "Continue from a lower nonce, after the chain was reset; gives up what had higher ones (operators)");
}

}  // namespace fencepost::cli
