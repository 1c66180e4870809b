#include "cli/signer_commands.hpp"

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
#include "evm/address.hpp"
#include "evm/keystore_file.hpp"
#include "evm/private_key.hpp"

#include "cli/api_command.hpp"
#include "cli/prompt.hpp"
#include "cli/text_table.hpp"
#include "cli/tx_view.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// The directory, and a password if there is one.
Result<KeystoreConfig> keystore_of(const KeystoreFlags& flags) {
  ConfigFlags config{.config_file = flags.config_file, .data_dir = {}, .overrides = {}};
  if (!flags.directory.empty()) {
    config.overrides.push_back({"--keystore-dir", "keystore.directory", flags.directory});
  }
  if (!flags.password_file.empty()) {
    config.overrides.push_back({"--password-file", "keystore.password_file", flags.password_file});
  }
  auto loaded = load(config, {});
  if (!loaded) return fail(loaded.error());
  if (loaded->keystore.directory.empty()) {
    return fail(invalid("no_keystore", "which directory? Give --keystore-dir, or set keystore.directory"));
  }
  return std::move(loaded->keystore);
}

// Twice, since a mistyped password loses the key.
Result<Secret> ask_new_password() {
  auto password = ask_secret("Password for the key file");
  if (!password && password.error().code == "no_terminal") {
    return fail(invalid("no_password", "which password? Give --password-file, or set FENCEPOST_KEYSTORE_PASSWORD"));
  }
  if (!password) return password;
  const auto again = ask_secret("The same again");
  if (!again) return again;
  if (*again != *password) return fail(invalid("password_differs", "the two are not the same"));
  return password;
}

int write_key(const evm::PrivateKey& key, const KeystoreConfig& keystore, bool as_json) {
  SystemClock clock;
  SystemRandom random;
  auto password = keystore.password.empty() ? ask_new_password() : Result<Secret>(keystore.password);
  if (!password) return report(password.error());
  if (::isatty(STDERR_FILENO) == 1) fmt::print(stderr, "· encrypting the key …\n");
  const auto file = evm::write_keystore(keystore.directory, key, *password, clock, random);
  if (!file) return report(file.error());
  const auto address = evm::checksum_address(evm::address_text(key.address()));
  if (as_json) {
    fmt::print("{}\n", json::serialize(json::object{{"address", address}, {"file", file->string()}}));
  } else {
    fmt::print(
        "address  {}\nfile     {}\n\nA node uses it from its next start on. Keep a copy of the file and of the "
        "password: without both, what the address holds is lost.\n",
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

// Without a password: only what the file states openly.
KeyFile look_into(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(evm::kMaxKeystoreBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  const auto keystore = evm::parse_keystore(text);
  if (!keystore) return {file, "", keystore.error().message};
  return {file, keystore->address ? evm::checksum_address(*keystore->address) : "", ""};
}

int list_files(const SignerListFlags& flags) {
  const auto keystore = keystore_of(flags.keystore);
  if (!keystore) return report(keystore.error());
  const auto files = evm::keystore_files(keystore->directory);
  if (!files) return report(files.error());
  TextTable table({"ADDRESS", "FILE", "PROBLEM"});
  json::array items;
  for (const auto& file : *files) {
    const auto key = look_into(file);
    table.add({key.address.empty() ? "not stated" : key.address, file.filename().string(), key.problem});
    items.push_back({{"address", key.address.empty() ? json::value(nullptr) : json::value(key.address)},
                     {"file", file.string()},
                     {"problem", key.problem.empty() ? json::value(nullptr) : json::value(key.problem)}});
  }
  if (flags.json) {
    print_json(json_list(std::move(items)));
  } else if (table.empty()) {
    fmt::print("no keys in {}: fencepost signer new\n", keystore->directory);
  } else {
    fmt::print("{}", table.text());
  }
  return kExitDone;
}

int list_from_api(const SignerListFlags& flags) {
  const auto access = find_api(flags.api, process_environment());
  if (!access) return report(access.error());
  const auto answer = ApiClient(*access).get("/api/v1/signers");
  if (!answer) return report(answer.error());
  const auto* items = answer->is_object() ? answer->get_object().if_contains("items") : nullptr;
  if (flags.json) {
    fmt::print("{}\n", json::serialize(*answer));
  } else if (items == nullptr || !items->is_array() || items->get_array().empty()) {
    fmt::print("no signers\n");
  } else {
    fmt::print("{}", signer_table(items->get_array()));
  }
  return kExitDone;
}

}  // namespace

int signer_new_command(const SignerNewFlags& flags) {
  const auto keystore = keystore_of(flags.keystore);
  if (!keystore) return report(keystore.error());
  SystemRandom random;
  return write_key(evm::PrivateKey::generate(random), *keystore, flags.json);
}

int signer_import_command(const SignerImportFlags& flags) {
  const auto keystore = keystore_of(flags.keystore);
  if (!keystore) return report(keystore.error());
  const auto key = flags.from_keystore.empty() ? key_from_hex(flags) : key_from_keystore(flags);
  if (!key) return report(key.error());
  return write_key(*key, *keystore, flags.json);
}

int signer_list_command(const SignerListFlags& flags) {
  return flags.from_api ? list_from_api(flags) : list_files(flags);
}

int signer_act_command(const SignerActFlags& flags) {
  const auto signer = evm::parse_address(flags.signer);
  if (!signer) return report(signer.error());
  const auto access = find_api(flags.api, process_environment());
  if (!access) return report(access.error());
  json::object body{{"reason", flags.reason}};
  if (flags.chain_id) body["chainId"] = *flags.chain_id;
  if (flags.nonce) body["nonce"] = *flags.nonce;
  const auto target = fmt::format("/api/v1/signers/{}/{}", *signer, flags.verb);
  const auto answer = ApiClient(*access).post(target, body, false);
  if (!answer) return report(answer.error());
  if (flags.json) {
    fmt::print("{}\n", json::serialize(*answer));
  } else if (text_at(*answer, "txId").empty()) {
    fmt::print("{} on chain {}: the next nonce is {}\n", text_at(*answer, "signer"), text_at(*answer, "chainId"),
               text_at(*answer, "nextNonce"));
  } else {
    fmt::print("{}", tx_details(*answer));
  }
  return kExitDone;
}

}  // namespace fencepost
