#include "doctor/keystore.hpp"

#include <map>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "evm/address.hpp"
#include "evm/keys/keystore_file.hpp"

namespace fencepost::doctor {
namespace {

namespace fs = std::filesystem;

constexpr auto kKeystoreCheck = "keystore";

std::string fix_for_key(const std::string& code) {
  if (code == "wrong_password") {
    return "check keystore.password: one password opens all files of the directory. Store a key with another password "
           "by 'fencepost signer import --from-keystore'";
  }
  if (code == "cannot_read_keystore") return "let the user who runs the node read it";
  return "restore the file from a backup, or move it out of the directory";
}

// "chmod 600 FILE", if other users can read the file or the directory's other users can change it.
Findings check_rights(const fs::path& path, mode_t unwanted, const char* others, const char* right) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || (info.st_mode & unwanted) == 0) return {};
  return {warned(kKeystoreCheck,
                 fmt::format("{}: mode {:03o}, {}", one_line(path.string()), info.st_mode & 0777, others),
                 fmt::format("chmod {} {}", right, shell_word(path.string())))};
}

Findings check_files(const KeystoreConfig& keystore, const std::vector<fs::path>& files) {
  Findings out;
  std::map<std::string, fs::path> opened;
  for (const auto& file : files) {
    for (auto& finding : check_rights(file, S_IRWXG | S_IRWXO, "so other users may read or change it", "600")) {
      out.push_back(std::move(finding));
    }
    const auto key = evm::read_keystore(file, keystore.password);
    if (!key) {
      out.push_back(failed(kKeystoreCheck,
                           fmt::format("{}: {}", one_line(file.string()), one_line(key.error().message)),
                           fix_for_key(key.error().code)));
      continue;
    }
    const auto [first, added] = opened.emplace(evm::address_text(key->address()), file);
    if (!added) {
      out.push_back(failed(kKeystoreCheck,
                           fmt::format("{}: has the key of {}, as has {}", one_line(file.string()), first->first,
                                       one_line(first->second.string())),
                           "remove one of them: a node does not start with both"));
    }
  }
  if (!opened.empty()) {
    out.push_back(passed(kKeystoreCheck, fmt::format("the password opens {} of {} key files in {}", opened.size(),
                                                     files.size(), one_line(keystore.directory))));
  }
  return out;
}

}  // namespace

Findings check_keystore(const KeystoreConfig& keystore) {
  Findings out;
  if (!keystore.dev_keys.empty()) {
    out.push_back(passed(kKeystoreCheck, fmt::format("{} development keys", keystore.dev_keys.size())));
  }
  if (keystore.directory.empty()) {
    if (out.empty()) out.push_back(passed(kKeystoreCheck, "none configured: this node signs nothing"));
    return out;
  }
  const auto files = evm::keystore_files(keystore.directory);
  if (!files) {
    out.push_back(failed(kKeystoreCheck, one_line(files.error().message),
                         "create it with 'fencepost signer new', or correct keystore.directory"));
    return out;
  }
  for (auto& finding :
       check_rights(keystore.directory, S_IWGRP | S_IWOTH, "so other users may replace key files", "700")) {
    out.push_back(std::move(finding));
  }
  if (files->empty()) {
    out.push_back(warned(kKeystoreCheck, fmt::format("no key files in {}", one_line(keystore.directory)),
                         "store a key with 'fencepost signer new' or 'signer import'"));
  }
  for (auto& finding : check_files(keystore, *files)) out.push_back(std::move(finding));
  return out;
}

}  // namespace fencepost::doctor
