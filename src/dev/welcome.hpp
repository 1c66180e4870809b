// The text that `up` prints once everything runs, and the up.json that it writes for scripts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "base/secret.hpp"

namespace fencepost {

// The facts that a user or a script needs to use the running system.
struct UpFacts {
  std::string url;
  Secret api_key;
  std::string rpc_url;
  std::int64_t chain_id = 0;
  std::vector<std::string> signers;  // the funded accounts of the dev chain; empty: the user configured a chain
  std::string dsn;
  std::filesystem::path data_dir;     // absolute
  std::filesystem::path cluster_dir;  // PostgreSQL's data, usually below data_dir
  std::string log_file;
  std::filesystem::path mail_dir;  // where mails are files; empty: mail goes elsewhere
  // For commands that work when pasted in the user's working directory.
  std::string program = "fencepost";  // the name by which the user starts it: "./fp"
  std::string data_dir_flag;          // " --data-dir x"; empty: commands find the directory without it
  // What the node runs with, as settings_json returns it.
  boost::json::object settings = {};
};

std::string welcome(const UpFacts& facts);
std::string up_json(const UpFacts& facts);

// " --data-dir x"; empty if `given` is "var" in the working directory, where commands look by default.
std::string data_dir_flag(const std::filesystem::path& given, const std::filesystem::path& working_directory);

}  // namespace fencepost
