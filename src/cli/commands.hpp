// What each command does, once its flags are read. Each returns the process's exit code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

#include "config/command_config.hpp"
#include "dev/up.hpp"

namespace fencepost {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;         // or refused
inline constexpr int kExitUsage = 2;          // the command line, the configuration or the request is wrong
inline constexpr int kExitFailedForGood = 3;  // the transaction FAILED_FINAL, the transfer rejected, the audit wrong
inline constexpr int kExitNotYet = 4;         // it is not there yet, and the time is over
inline constexpr int kExitNotFound = 5;       // there is no such thing
inline constexpr int kExitUnavailable = 6;    // cannot be reached, or too busy: the same may succeed later

// Where a command finds its configuration.
struct ConfigFlags {
  std::string config_file;  // empty: FENCEPOST_CONFIG, or none
  std::string data_dir;     // of a running `up`, whose database is then meant; empty: none
  std::vector<ConfigFlag> overrides;
};
Result<Config> load(const ConfigFlags& flags, std::vector<std::string> required, KeyFiles keys = KeyFiles::kClosed);

// Prints the error for a person, on stderr, and gives the exit code that stands for it.
int report(const Error& error);

int serve_command(const ConfigFlags& flags);

int up_command(const UpOptions& options);

int migrate_command(const ConfigFlags& flags);

struct DoctorFlags {
  ConfigFlags config;
  bool json = false;
};
int doctor_command(const DoctorFlags& flags);

struct KeyCreateFlags {
  ConfigFlags config;
  std::string label;
  std::vector<std::string> scopes;
  std::vector<std::string> signers;  // empty: every signer
  std::vector<std::string> guilds;   // empty: every guild
  std::string expires_in;            // "30d"; empty: never
  bool json = false;
};
int apikey_create_command(const KeyCreateFlags& flags);
int apikey_list_command(const ConfigFlags& flags, bool json);
int apikey_revoke_command(const ConfigFlags& flags, const std::string& key_id);

int config_command(const ConfigFlags& flags);

}  // namespace fencepost
