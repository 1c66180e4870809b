// `fencepost signer …`: key files on this machine, and what a running node knows of its signers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/api_client.hpp"
#include "cli/commands.hpp"

namespace fencepost {

// Where key files are kept and what opens them. Each may come from the configuration instead (`keystore.directory`,
// `keystore.password`, FENCEPOST_KEYSTORE_PASSWORD); a password that is nowhere is asked for.
struct KeystoreFlags {
  std::string config_file;
  std::string directory;
  std::string password_file;
};

struct SignerNewFlags {
  KeystoreFlags keystore;
  bool json = false;
};
int signer_new_command(const SignerNewFlags& flags);

struct SignerImportFlags {
  KeystoreFlags keystore;
  std::string key_file = "-";      // a private key in hex; "-": standard input
  std::string from_keystore;       // or a key file to take it from
  std::string from_password_file;  // the password of that; empty: asked for
  bool json = false;
};
int signer_import_command(const SignerImportFlags& flags);

struct SignerListFlags {
  KeystoreFlags keystore;
  ApiFlags api;
  bool from_api = false;  // what the node says, instead of the files here
  bool json = false;
};
int signer_list_command(const SignerListFlags& flags);

// An operator's act on one signer.
struct SignerActFlags {
  ApiFlags api;
  std::string verb;  // "fill-nonce" or "accept-reconcile"
  std::string signer;
  std::optional<std::int64_t> chain_id;
  std::optional<std::int64_t> nonce;  // of fill-nonce
  std::string reason;
  bool json = false;
};
int signer_act_command(const SignerActFlags& flags);

}  // namespace fencepost
